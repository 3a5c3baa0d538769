// The pages as CMake has put them together, for report/report_page.cc.
        .section .rodata
        .global hpd_report_page_begin
        .global hpd_report_page_end
hpd_report_page_begin:
        .incbin "report_page.html"
hpd_report_page_end:
        .global hpd_objects_page_begin
        .global hpd_objects_page_end
hpd_objects_page_begin:
        .incbin "objects_page.html"
hpd_objects_page_end:
        .section .note.GNU-stack, "", @progbits
