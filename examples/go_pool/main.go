// A Go program that keeps buffers outside the garbage collector and reports them.
// Build with CGO_CFLAGS=-I... and CGO_LDFLAGS=-L... for header and library.
package main

/*
#cgo LDFLAGS: -lheapprofd_client
#include <heapprofd/heap_profile.h>
#include <stdlib.h>
*/
import "C"

import (
	"fmt"
	"unsafe"
)

var heap C.uint32_t

func takeBuffer(size int) unsafe.Pointer {
	scope := C.heapprofd_nested_begin(heap)
	buffer := C.malloc(C.size_t(size))
	C.heapprofd_nested_end(scope)
	C.AHeapProfile_reportAllocation(heap, C.uint64_t(uintptr(buffer)), C.uint64_t(size))
	return buffer
}

func giveBack(buffer unsafe.Pointer) {
	C.AHeapProfile_reportFree(heap, C.uint64_t(uintptr(buffer)))
	C.free(buffer)
}

func main() {
	name := C.CString("go.pool")
	defer C.free(unsafe.Pointer(name))
	heap = C.AHeapProfile_registerHeap(C.AHeapInfo_create(name))
	var kept []unsafe.Pointer
	for i := 0; i < 1000; i++ {
		buffer := takeBuffer(2048)
		if i%2 == 0 {
			kept = append(kept, buffer)
		} else {
			giveBack(buffer)
		}
	}
	fmt.Println("live", len(kept)*2048)
}
