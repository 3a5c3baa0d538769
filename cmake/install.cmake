# cmake --install build/release --component tool --prefix PREFIX. Nothing installed knows its prefix: the binary finds
# the library by its own place (FindPreloadLibrary), so the tree can be moved.
install(TARGETS heap_profile heapprofd RUNTIME DESTINATION bin COMPONENT tool)
install(TARGETS heapprofd_preload LIBRARY DESTINATION lib/heapprofd COMPONENT tool)
install(FILES ${CMAKE_BINARY_DIR}/src/client/libheapprofd_stub32.so DESTINATION lib/heapprofd COMPONENT tool)
install(DIRECTORY ${CMAKE_BINARY_DIR}/src/client/platforms DESTINATION lib/heapprofd COMPONENT tool)
install(FILES README.md LICENSE DESTINATION share/doc/heapprofd COMPONENT tool)
install(DIRECTORY docs DESTINATION share/doc/heapprofd COMPONENT tool FILES_MATCHING PATTERN "*.md")
install(FILES ${CMAKE_BINARY_DIR}/share/man1/heap_profile.1 DESTINATION share/man/man1 COMPONENT tool)
install(DIRECTORY ${CMAKE_BINARY_DIR}/share/bash-completion ${CMAKE_BINARY_DIR}/share/zsh ${CMAKE_BINARY_DIR}/share/fish
        DESTINATION share COMPONENT tool)
install(DIRECTORY packaging/systemd DESTINATION lib COMPONENT tool)
