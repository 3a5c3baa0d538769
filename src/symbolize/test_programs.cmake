# The programs that the tests symbolize, in every shape that debug information comes in. Built by plain
# commands: neither the build type nor sanitizers may change what the tests know about them.
find_program(HPD_XZ xz REQUIRED)
find_program(HPD_RUSTC rustc)
find_program(HPD_DWZ dwz)

set(SYMBOLIZE_DATA ${CMAKE_CURRENT_SOURCE_DIR}/testdata)
set(SYMBOLIZE_PROGRAMS ${CMAKE_CURRENT_BINARY_DIR}/programs)
file(MAKE_DIRECTORY ${SYMBOLIZE_PROGRAMS}/separate ${SYMBOLIZE_PROGRAMS}/wrong)
set(SYMBOLIZE_SHAPES)

# symbolize_program(NAME COMMAND ... [COMMAND ...] [DEPENDS ...]): commands run in the programs' folder.
function(symbolize_program name)
  cmake_parse_arguments(ARG "" "" "DEPENDS" ${ARGN})
  add_custom_command(OUTPUT ${SYMBOLIZE_PROGRAMS}/${name} ${ARG_UNPARSED_ARGUMENTS}
    WORKING_DIRECTORY ${SYMBOLIZE_PROGRAMS} DEPENDS ${ARG_DEPENDS} VERBATIM)
  set(SYMBOLIZE_SHAPES ${SYMBOLIZE_SHAPES} ${SYMBOLIZE_PROGRAMS}/${name} PARENT_SCOPE)
endfunction()

set(shapes_cxx ${CMAKE_CXX_COMPILER} -std=c++20 -O2 -Wl,--build-id ${SYMBOLIZE_DATA}/shapes.cc)
set(shapes_sources ${SYMBOLIZE_DATA}/shapes.cc ${SYMBOLIZE_DATA}/shapes.h)

symbolize_program(shapes COMMAND ${shapes_cxx} -g -o shapes DEPENDS ${shapes_sources})
symbolize_program(shapes_dwarf4 COMMAND ${shapes_cxx} -g -gdwarf-4 -no-pie -o shapes_dwarf4
  DEPENDS ${shapes_sources})
symbolize_program(shapes_split COMMAND ${shapes_cxx} -g -gsplit-dwarf -o shapes_split
  DEPENDS ${shapes_sources})
symbolize_program(shapes_no_debug COMMAND ${shapes_cxx} -o shapes_no_debug DEPENDS ${shapes_sources})
symbolize_program(shapes_no_id COMMAND ${shapes_cxx} -g -Wl,--build-id=none -o shapes_no_id
  DEPENDS ${shapes_sources})
symbolize_program(shapes_stripped COMMAND ${shapes_cxx} -rdynamic -s -o shapes_stripped
  DEPENDS ${shapes_sources})
# Debug information beside the program, as distributions ship it.
symbolize_program(shapes_linked
  COMMAND ${CMAKE_OBJCOPY} --only-keep-debug shapes shapes_linked.debug
  COMMAND ${CMAKE_STRIP} -o shapes_linked shapes
  COMMAND ${CMAKE_OBJCOPY} --add-gnu-debuglink=shapes_linked.debug shapes_linked
  DEPENDS ${SYMBOLIZE_PROGRAMS}/shapes)
# The same link, but the file behind it belongs to another build.
symbolize_program(wrong/shapes_linked
  COMMAND ${CMAKE_COMMAND} -E copy shapes_linked wrong/shapes_linked
  COMMAND ${CMAKE_OBJCOPY} --only-keep-debug shapes_dwarf4 wrong/shapes_linked.debug
  DEPENDS ${SYMBOLIZE_PROGRAMS}/shapes_linked ${SYMBOLIZE_PROGRAMS}/shapes_dwarf4)
# No link: found by build id below a directory, which the test lays out.
symbolize_program(separate/shapes_by_id
  COMMAND ${CMAKE_STRIP} -o separate/shapes_by_id shapes DEPENDS ${SYMBOLIZE_PROGRAMS}/shapes)
# .gnu_debugdata: the symbol table of local functions, compressed.
symbolize_program(shapes_mini
  COMMAND ${CMAKE_OBJCOPY} -S --remove-section .gnu_debugaltlink --keep-symbol=_ZL12HiddenHelperl
          shapes_no_debug mini
  COMMAND ${HPD_XZ} -f -k mini
  COMMAND ${CMAKE_STRIP} -o shapes_mini shapes_no_debug
  COMMAND ${CMAKE_OBJCOPY} --add-section .gnu_debugdata=mini.xz shapes_mini
  DEPENDS ${SYMBOLIZE_PROGRAMS}/shapes_no_debug)
if(HPD_DWZ)
  # Names of two programs moved to a third file, to which .gnu_debugaltlink leads.
  symbolize_program(shapes_dwz
    COMMAND ${CMAKE_COMMAND} -E copy shapes_dwarf4 shapes_dwz
    COMMAND ${CMAKE_COMMAND} -E copy shapes_dwarf4 shapes_dwz_twin
    COMMAND ${HPD_DWZ} -m shapes_alt --relative -l 1 -L 1000000 shapes_dwz shapes_dwz_twin
    DEPENDS ${SYMBOLIZE_PROGRAMS}/shapes_dwarf4)
endif()
if(HPD_RUSTC)
  symbolize_program(greet
    COMMAND ${HPD_RUSTC} -g -C opt-level=1 -C link-arg=-Wl,--build-id -o greet ${SYMBOLIZE_DATA}/greet.rs
    DEPENDS ${SYMBOLIZE_DATA}/greet.rs)
endif()
# A program of some size, for comparison with addr2line: our own sources, with debug information.
symbolize_program(self
  COMMAND ${CMAKE_CXX_COMPILER} -std=c++20 -O2 -g -gdwarf-4 -Wl,--build-id -I${PROJECT_SOURCE_DIR}/src
          ${CMAKE_CURRENT_SOURCE_DIR}/symbol_index.cc ${CMAKE_CURRENT_SOURCE_DIR}/dwarf/unit_scan.cc
          ${CMAKE_CURRENT_SOURCE_DIR}/dwarf/unit_index.cc ${CMAKE_CURRENT_SOURCE_DIR}/dwarf/debug_info.cc
          ${CMAKE_CURRENT_SOURCE_DIR}/demangle.cc -shared -fPIC -o self
  DEPENDS ${SYMBOLIZE_DATA}/shapes.h)

add_custom_target(symbolize_test_programs DEPENDS ${SYMBOLIZE_SHAPES})
