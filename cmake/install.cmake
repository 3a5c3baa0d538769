# cmake --install build/release --prefix PREFIX. Nothing installed knows its prefix: the binary finds the library by
# its own place (FindPreloadLibrary), so the tree can be moved.
install(TARGETS heap_profile RUNTIME DESTINATION bin)
install(TARGETS heapprofd_preload LIBRARY DESTINATION lib/heapprofd)
install(FILES README.md LICENSE DESTINATION share/doc/heapprofd)
install(DIRECTORY docs DESTINATION share/doc/heapprofd FILES_MATCHING PATTERN "*.md")
