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
# Under the names that Perfetto's users know: the two that convert and ask beside the tool, all of them in a folder of
# their own, to be put on PATH by whoever wants them to stand in for Perfetto's.
install(CODE [[
  set(prefix "$ENV{DESTDIR}${CMAKE_INSTALL_PREFIX}")
  function(hpd_link target name)
    get_filename_component(folder "${prefix}/${name}" DIRECTORY)
    file(MAKE_DIRECTORY "${folder}")
    file(REMOVE "${prefix}/${name}")
    file(CREATE_LINK "${target}" "${prefix}/${name}" SYMBOLIC)
    message(STATUS "Installing: ${prefix}/${name}")
  endfunction()
  foreach(name traceconv trace_processor_shell)
    hpd_link(heap_profile bin/${name})
  endforeach()
  foreach(name heap_profile hprof-conv perfetto trace_processor_shell traceconv)
    hpd_link(../../../bin/heap_profile lib/heapprofd/compat/${name})
  endforeach()
  foreach(name heapprofd traced)
    hpd_link(../../../bin/heapprofd lib/heapprofd/compat/${name})
  endforeach()
  hpd_link(../libheapprofd_preload.so lib/heapprofd/compat/libheapprofd_glibc_preload.so)
]] COMPONENT tool)
