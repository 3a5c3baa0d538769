# The attached client (src/client/attach_image.lds) as bytes of ours.
        .section .rodata
        .globl HpdClientImage, HpdClientImageEnd
        .hidden HpdClientImage, HpdClientImageEnd
        .balign 16
HpdClientImage:
        .incbin HPD_CLIENT_IMAGE
HpdClientImageEnd:
        .section .note.GNU-stack,"",@progbits
