// The compiled form of proto/trace.proto, for trace/text_format.cc.
        .section .rodata
        .global hpd_trace_schema_begin
        .global hpd_trace_schema_end
hpd_trace_schema_begin:
        .incbin "trace.desc"
hpd_trace_schema_end:
        .section .note.GNU-stack, "", @progbits
