# What is installed, in four components, each a Debian package (cmake/package.cmake): tool, daemon, client, client_dev.
# Nothing installed knows its prefix: the programs find each other and the library by their own place, so the tree can
# be moved.
include(GNUInstallDirs)
install(TARGETS heap_profile RUNTIME DESTINATION bin COMPONENT tool)
install(TARGETS heapprofd_preload LIBRARY DESTINATION lib/heapprofd COMPONENT tool)
if(TARGET heapprofd_stub32)
  install(FILES ${CMAKE_BINARY_DIR}/src/client/libheapprofd_stub32.so DESTINATION lib/heapprofd COMPONENT tool)
endif()
install(DIRECTORY ${CMAKE_BINARY_DIR}/src/client/platforms DESTINATION lib/heapprofd COMPONENT tool)
install(FILES README.md LICENSE DESTINATION share/doc/heapprofd COMPONENT tool)
install(DIRECTORY docs DESTINATION share/doc/heapprofd COMPONENT tool FILES_MATCHING PATTERN "*.md" PATTERN "*.webp")
# What the pages lead to.
install(DIRECTORY examples DESTINATION share/doc/heapprofd COMPONENT tool PATTERN CMakeLists.txt EXCLUDE)
install(FILES packaging/sidecar/Dockerfile DESTINATION share/doc/heapprofd/packaging/sidecar COMPONENT tool)
install(DIRECTORY ${CMAKE_BINARY_DIR}/share/man/man1 DESTINATION share/man COMPONENT tool FILES_MATCHING PATTERN "*.1")
install(FILES packaging/heap_profile.bash DESTINATION share/bash-completion/completions RENAME heap_profile COMPONENT tool)
install(FILES ${CMAKE_BINARY_DIR}/share/zsh/site-functions/_heap_profile DESTINATION share/zsh/site-functions COMPONENT tool)
install(FILES ${CMAKE_BINARY_DIR}/share/fish/vendor_completions.d/heap_profile.fish DESTINATION share/fish/vendor_completions.d
        COMPONENT tool)

install(TARGETS heapprofd RUNTIME DESTINATION bin COMPONENT daemon)
install(FILES ${CMAKE_BINARY_DIR}/share/zsh/site-functions/_heapprofd DESTINATION share/zsh/site-functions COMPONENT daemon)
install(FILES ${CMAKE_BINARY_DIR}/share/fish/vendor_completions.d/heapprofd.fish DESTINATION share/fish/vendor_completions.d
        COMPONENT daemon)
install(DIRECTORY packaging/systemd DESTINATION lib COMPONENT daemon)
install(FILES ${CMAKE_BINARY_DIR}/share/man/man8/heapprofd.8 DESTINATION share/man/man8 COMPONENT daemon)
if(HPD_PORTABLE)
  if(TARGET Zydis::Zydis)  # Debian has no archive of it
    install(FILES $<TARGET_FILE:Zydis::Zydis> RENAME libZydis.so.4.0 DESTINATION lib/heapprofd COMPONENT daemon)
  endif()
  # What is linked into the programs goes with its licence.
  foreach(package libboost-dev libbsd-dev libbz2-dev libdeflate-dev libdw-dev libedit-dev libelf-dev libiberty-dev liblzma-dev
          libmd-dev libncurses-dev libprotobuf-dev libprotozero-dev libsqlite3-dev libstdc++-12-dev libtraceevent-dev libzstd-dev libzydis-dev
          nlohmann-json3-dev zlib1g-dev)
    file(REAL_PATH /usr/share/doc/${package} documents)  # often a link to those of the library
    install(FILES ${documents}/copyright RENAME ${package} DESTINATION share/doc/heapprofd/licences COMPONENT daemon)
  endforeach()
endif()

# Under the names that Perfetto's users know: the two that convert and ask beside the tool, all of them in a folder of
# their own, to be put on PATH by whoever wants them to stand in for Perfetto's.
function(hpd_install_links component target folder)  # NAMES
  foreach(name ${ARGN})
    file(MAKE_DIRECTORY ${CMAKE_BINARY_DIR}/links/${folder})
    file(CREATE_LINK ${target} ${CMAKE_BINARY_DIR}/links/${folder}/${name} SYMBOLIC)
    install(FILES ${CMAKE_BINARY_DIR}/links/${folder}/${name} DESTINATION ${folder} COMPONENT ${component})
  endforeach()
endfunction()
set(compat lib/heapprofd/compat)
hpd_install_links(tool heap_profile bin traceconv trace_processor_shell)
hpd_install_links(tool ../../../bin/heap_profile ${compat} heap_profile hprof-conv java_heap_dump perfetto trace_processor_shell traceconv)
hpd_install_links(tool ../libheapprofd_preload.so ${compat} libheapprofd_glibc_preload.so)
hpd_install_links(daemon ../../../bin/heapprofd ${compat} heapprofd traced)
hpd_install_links(tool heap_profile share/bash-completion/completions traceconv trace_processor_shell)
hpd_install_links(tool heap_profile.fish share/fish/vendor_completions.d traceconv.fish trace_processor_shell.fish)
hpd_install_links(daemon heap_profile share/bash-completion/completions heapprofd)
