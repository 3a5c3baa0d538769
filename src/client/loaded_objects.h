// Symbols of loaded objects, from the loader's own lists: needed before dlsym can be
// called safely, and without any call into libc.
#pragma once

#include <link.h>

namespace heapprofd {

// In the loader's search order, linked by l_next. nullptr: there is no loader.
const link_map* FirstObject();

// The object with this dynamic section; nullptr when it is not in the list.
const link_map* ObjectAt(const ElfW(Dyn) * dynamic);

// nullptr when the object does not define the function.
void* FindFunction(const link_map& object, const char* name);

// The symbol by which the object defines the function at `address`, which may have
// several of one name (versions). nullptr when there is none.
const ElfW(Sym) *
    FindSymbol(const link_map& object, const char* name, const void* address);

}  // namespace heapprofd
