# Debian packages, one per component. tools/package makes them: the same to the byte whenever, wherever and by whomever.
set(packaging ${PROJECT_SOURCE_DIR}/packaging/debian)
file(STRINGS ${packaging}/changelog newest LIMIT_COUNT 1)
if(NOT newest MATCHES "\\(${PROJECT_VERSION}\\)")
  message(FATAL_ERROR "cannot package version ${PROJECT_VERSION}: packaging/debian/changelog begins with another one; add it there")
endif()
set(CPACK_PACKAGE_NAME heapprofd)
file(STRINGS ${packaging}/changelog maintainer REGEX "^ -- " LIMIT_COUNT 1)
string(REGEX REPLACE "^ -- (.*>).*" "\\1" CPACK_PACKAGE_CONTACT "${maintainer}")
set(CPACK_COMPONENTS_ALL tool daemon client client_dev)
set(CPACK_STRIP_FILES ON)
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
set(CPACK_OUTPUT_FILE_PREFIX packages)

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_PRE_BUILD_SCRIPTS ${packaging}/debian_files.cmake)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION devel)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
set(CPACK_DEBIAN_TOOL_PACKAGE_NAME heapprofd)
set(CPACK_DEBIAN_TOOL_PACKAGE_DEPENDS "heapprofd-daemon (= ${PROJECT_VERSION})")
set(CPACK_DEBIAN_TOOL_DESCRIPTION "heap profiler for native programs that run or are to run
heap_profile tells who holds the memory of a C, C++ or Rust program, with
callers and error bars: of one that it starts, of one that runs already, or of
all that start under a name. It samples allocations at a cost meant for
production, and leaves a report for a browser and traces that Perfetto and
pprof read. Heap dumps of Java can be taken and examined, too.")
set(CPACK_DEBIAN_DAEMON_PACKAGE_NAME heapprofd-daemon)
set(CPACK_DEBIAN_DAEMON_PACKAGE_SECTION admin)
set(CPACK_DEBIAN_DAEMON_PACKAGE_CONTROL_EXTRA "${packaging}/postinst;${packaging}/prerm;${packaging}/postrm")
set(CPACK_DEBIAN_DAEMON_DESCRIPTION "heap profiler for native programs - service
heapprofd is what records for heap_profile: started by it for one recording,
or by systemd for all users of a machine. The units that come along are not
enabled.")
set(CPACK_DEBIAN_CLIENT_PACKAGE_NAME libheapprofd-client1)
set(CPACK_DEBIAN_CLIENT_PACKAGE_SECTION libs)
set(CPACK_DEBIAN_CLIENT_PACKAGE_SHLIBDEPS OFF)  # it has none; else CPack would call ldconfig beside the trigger
set(CPACK_DEBIAN_CLIENT_PACKAGE_CONTROL_EXTRA "${packaging}/shlibs;${packaging}/triggers")
set(CPACK_DEBIAN_CLIENT_DESCRIPTION "heap profiler for native programs - library
Programs with allocators of their own report their blocks to this library; it
does nothing until heap_profile asks for them.")
set(CPACK_DEBIAN_CLIENT_DEV_PACKAGE_NAME libheapprofd-client-dev)
set(CPACK_DEBIAN_CLIENT_DEV_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_CLIENT_DEV_PACKAGE_DEPENDS "libheapprofd-client1 (= ${PROJECT_VERSION})")
set(CPACK_DEBIAN_CLIENT_DEV_DESCRIPTION "heap profiler for native programs - development files
Header, archive, pkg-config file and CMake package for programs that report
the blocks of their own allocators to heap_profile.")
include(CPack)
