# The attached client (src/client/image/attach_image.lds) as bytes of ours.
        .section .rodata
        .globl hpd_client_image, hpd_client_image_end
        .hidden hpd_client_image, hpd_client_image_end
        .balign 16
hpd_client_image:
        .incbin HPD_CLIENT_IMAGE
hpd_client_image_end:
        .section .note.GNU-stack,"",@progbits
