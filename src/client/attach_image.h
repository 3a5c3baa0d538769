// The attached client's own variables (wire/attached_client.h says what they mean).
#pragma once

#include "wire/attached_client.h"

extern "C" heapprofd::AttachState HpdAttachState __attribute__((visibility("hidden")));
