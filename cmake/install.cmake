# cmake --install build/release --component tool --prefix PREFIX. Nothing installed knows its prefix: the binary finds
# the library by its own place (FindPreloadLibrary), so the tree can be moved.
install(TARGETS heap_profile RUNTIME DESTINATION bin COMPONENT tool)
install(TARGETS heapprofd_preload LIBRARY DESTINATION lib/heapprofd COMPONENT tool)
install(FILES README.md LICENSE DESTINATION share/doc/heapprofd COMPONENT tool)
install(DIRECTORY docs DESTINATION share/doc/heapprofd COMPONENT tool FILES_MATCHING PATTERN "*.md")
