# What programs need that report their heaps: the library as the component "client", and as "client_dev" header, archive,
# pkg-config file and CMake package.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

install(FILES include/heapprofd/heap_profile.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/heapprofd COMPONENT client_dev)
set_target_properties(heapprofd_client PROPERTIES EXPORT_NAME client)
set_target_properties(heapprofd_client_static PROPERTIES EXPORT_NAME client_static)
install(TARGETS heapprofd_client heapprofd_client_static EXPORT heapprofd
        LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT client NAMELINK_COMPONENT client_dev
        ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT client_dev)
install(FILES $<TARGET_FILE_DIR:heapprofd_client>/heapprofd_standalone_client.so
        DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT client_dev)

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/heapprofd)
install(EXPORT heapprofd NAMESPACE heapprofd:: FILE heapprofdTargets.cmake DESTINATION ${package_dir} COMPONENT client_dev)
file(WRITE ${CMAKE_BINARY_DIR}/heapprofdConfig.cmake "include(\${CMAKE_CURRENT_LIST_DIR}/heapprofdTargets.cmake)\n")
write_basic_package_version_file(${CMAKE_BINARY_DIR}/heapprofdConfigVersion.cmake COMPATIBILITY SameMajorVersion)
install(FILES ${CMAKE_BINARY_DIR}/heapprofdConfig.cmake ${CMAKE_BINARY_DIR}/heapprofdConfigVersion.cmake
        DESTINATION ${package_dir} COMPONENT client_dev)

file(RELATIVE_PATH HPD_PREFIX_FROM_PC /prefix/${CMAKE_INSTALL_LIBDIR}/pkgconfig /prefix)  # so that the tree can be moved
configure_file(cmake/heapprofd-client.pc.in heapprofd-client.pc @ONLY)
install(FILES ${CMAKE_BINARY_DIR}/heapprofd-client.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT client_dev)

# All that is installed; what tools/heap_profile builds.
add_custom_target(installed DEPENDS heap_profile heapprofd heapprofd_preload generated_docs heapprofd_client
                  heapprofd_client_static)
