//! A Rust program whose global allocator reports every block.
//! Build: rustc -O -g heap.rs -L DIRECTORY_OF_THE_LIBRARY

use std::alloc::{GlobalAlloc, Layout, System};
use std::os::raw::{c_char, c_void};
use std::sync::atomic::{AtomicU32, Ordering};

#[link(name = "heapprofd_client")]
extern "C" {
    fn AHeapInfo_create(heap_name: *const c_char) -> *mut c_void;
    fn AHeapProfile_registerHeap(info: *mut c_void) -> u32;
    fn AHeapProfile_reportAllocation(heap_id: u32, alloc_id: u64, size: u64) -> bool;
    fn AHeapProfile_reportFree(heap_id: u32, alloc_id: u64);
    fn heapprofd_nested_begin(heap_id: u32) -> u32;
    fn heapprofd_nested_end(scope: u32);
}

static HEAP: AtomicU32 = AtomicU32::new(0);

struct Reporting;

unsafe impl GlobalAlloc for Reporting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let heap = HEAP.load(Ordering::Relaxed);
        let scope = heapprofd_nested_begin(heap);
        let block = System.alloc(layout);
        heapprofd_nested_end(scope);
        if !block.is_null() {
            AHeapProfile_reportAllocation(heap, block as u64, layout.size() as u64);
        }
        block
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        AHeapProfile_reportFree(HEAP.load(Ordering::Relaxed), block as u64);
        System.dealloc(block, layout);
    }
}

#[global_allocator]
static ALLOCATOR: Reporting = Reporting;

#[inline(never)]
fn keeps_boxes() -> Vec<Box<[u8; 500]>> {
    (0..1000).map(|_| Box::new([1u8; 500])).collect()
}

fn main() {
    let heap = unsafe { AHeapProfile_registerHeap(AHeapInfo_create(b"rust.global\0".as_ptr().cast())) };
    HEAP.store(heap, Ordering::Relaxed);
    let kept = keeps_boxes();
    println!("live {}", kept.len() * 500 + kept.capacity() * 8);
    std::process::exit(0); // with everything alive
}
