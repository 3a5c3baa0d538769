# hpd_module(NAME [COLD] SRCS ... DEPS ... LIBS ... TESTS ... THREAD_TESTS ... FUZZ ...): one folder = one static library, its
# unit tests and its fuzz targets. COLD: its programs spend their time elsewhere, and its compilation is the dearest thing about
# it, of which -Og saves a third. The tests are one program, NAME_tests, of which ctest runs each source in a process of its own,
# as NAME/SOURCE. Those that the thread sanitizer is to see are programs of their own, NAME_SOURCE.
set(HPD_WARNINGS -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wsign-conversion
    -Wnon-virtual-dtor -Wold-style-cast -Wimplicit-fallthrough)

add_custom_target(hpd_fuzzers)
add_custom_target(hpd_thread_tests)

function(hpd_compile_options target)
  target_include_directories(${target} PUBLIC ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR}/include)
  target_compile_options(${target} PRIVATE $<$<COMPILE_LANGUAGE:CXX>:${HPD_WARNINGS}>)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")  # it collects its garbage from 128 MB on, which is a tenth of its time
    target_compile_options(${target} PRIVATE $<$<COMPILE_LANGUAGE:CXX>:--param=ggc-min-heapsize=524288>)
  endif()
  if(HPD_WERROR)
    target_compile_options(${target} PRIVATE -Werror)
  endif()
  if(HPD_FUZZ)  # libraries too: otherwise the fuzzers do not see what their inputs reach
    target_compile_options(${target} PRIVATE -fsanitize=fuzzer-no-link)
  endif()
  if(HPD_COVERAGE)
    target_compile_options(${target} PUBLIC -fprofile-instr-generate -fcoverage-mapping)
    target_link_options(${target} PUBLIC -fprofile-instr-generate)
  endif()
  if(HPD_SANITIZE)
    target_compile_options(${target} PUBLIC -fsanitize=${HPD_SANITIZE} -fno-sanitize-recover=all)
    target_link_options(${target} PUBLIC -fsanitize=${HPD_SANITIZE})
    if(HPD_SANITIZE MATCHES address AND NOT HPD_FUZZ)
      # The sanitizers' tables are full of addresses: a program that lies where it was linked for leaves their pages alone, which
      # is most of what its start takes. Unit tests start once, and are as the programs that are recorded.
      set(is_no_test $<NOT:$<BOOL:$<TARGET_PROPERTY:HPD_IS_UNIT_TEST>>>)
      target_link_options(${target} PUBLIC
        $<$<AND:$<STREQUAL:$<TARGET_PROPERTY:TYPE>,EXECUTABLE>,${is_no_test}>:-no-pie>)
    endif()
  endif()
endfunction()

add_library(hpd_test_main STATIC EXCLUDE_FROM_ALL ${PROJECT_SOURCE_DIR}/tests/unit_main.cc)
hpd_compile_options(hpd_test_main)
target_link_libraries(hpd_test_main PUBLIC PkgConfig::GTEST_PKG Threads::Threads)

add_library(hpd_fuzz_main STATIC EXCLUDE_FROM_ALL ${PROJECT_SOURCE_DIR}/tests/fuzz_main.cc)
hpd_compile_options(hpd_fuzz_main)

function(hpd_test_program target)  # SOURCES
  add_executable(${target} ${ARGN})
  hpd_compile_options(${target})
  set_target_properties(${target} PROPERTIES HPD_IS_UNIT_TEST ON)
  target_link_libraries(${target} PRIVATE hpd_test_main)
endfunction()

function(hpd_unit_test module source)  # COMMAND
  cmake_path(GET source STEM stem)
  add_test(NAME ${module}/${stem} COMMAND ${ARGN})
  set_tests_properties(${module}/${stem} PROPERTIES TIMEOUT 120 LABELS unit)
endfunction()

function(hpd_thread_test module source)  # LIBRARIES
  cmake_path(GET source STEM stem)
  hpd_test_program(${module}_${stem} ${source})
  target_link_libraries(${module}_${stem} PRIVATE ${ARGN})
  hpd_unit_test(${module} ${source} ${module}_${stem})
  set_tests_properties(${module}/${stem} PROPERTIES LABELS "unit;threads")
  add_dependencies(hpd_thread_tests ${module}_${stem})
endfunction()

# A fuzz target: of libFuzzer where the compiler has it, else a program that knows the committed inputs and what chance makes
# of them.
function(hpd_fuzz_target module source)
  cmake_path(GET source STEM stem)
  file(GLOB seeds CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/testdata/${stem}/*)  # inputs to begin with
  list(APPEND seeds ${HPD_SEEDS_${stem}})
  list(JOIN seeds "," joined)
  set(list ${CMAKE_BINARY_DIR}/seeds/${stem}.list)
  file(GENERATE OUTPUT ${list} CONTENT "${joined}")
  add_executable(${stem} ${source})
  hpd_compile_options(${stem})
  target_link_libraries(${stem} PRIVATE hpd_${module})
  add_dependencies(hpd_fuzzers ${stem})
  set_property(GLOBAL APPEND PROPERTY HPD_FUZZERS $<TARGET_FILE:${stem}>)
  if(HPD_FUZZ)
    target_compile_options(${stem} PRIVATE -fsanitize=fuzzer)
    target_link_options(${stem} PRIVATE -fsanitize=fuzzer)
    if(seeds)
      set(seeds -seed_inputs=@${list})
    endif()
    add_test(NAME fuzz/${stem} COMMAND ${stem} -seed=1 -runs=20000 -max_total_time=10 -max_len=4096 -print_final_stats=0 ${seeds})
  else()
    target_link_libraries(${stem} PRIVATE hpd_fuzz_main)
    add_dependencies(${stem} hpd_fuzz_seeds)
    add_test(NAME fuzz/${stem} COMMAND ${stem} ${list} ${CMAKE_BINARY_DIR}/seeds/${stem}.input 20000 5)
  endif()
  set_tests_properties(fuzz/${stem} PROPERTIES TIMEOUT 300 LABELS fuzz)
endfunction()

function(hpd_module name)
  cmake_parse_arguments(ARG "COLD" "" "SRCS;DEPS;LIBS;TESTS;THREAD_TESTS;TEST_LIBS;FUZZ" ${ARGN})
  list(TRANSFORM ARG_DEPS PREPEND hpd_)
  if(ARG_SRCS)
    add_library(hpd_${name} STATIC ${ARG_SRCS})
    if(HPD_UNITY)  # sources share what the compiler makes of their headers; what runs inside targets is compiled elsewhere
      set_target_properties(hpd_${name} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 12)
    endif()
    hpd_compile_options(hpd_${name})
    if(ARG_COLD)
      target_compile_options(hpd_${name} PRIVATE $<$<CONFIG:Release>:-Og>)
    endif()
    target_link_libraries(hpd_${name} PUBLIC ${ARG_DEPS} ${ARG_LIBS})
  else()
    add_library(hpd_${name} INTERFACE)
    target_include_directories(hpd_${name} INTERFACE ${PROJECT_SOURCE_DIR}/src)
    target_link_libraries(hpd_${name} INTERFACE ${ARG_DEPS} ${ARG_LIBS})
  endif()
  if(ARG_TESTS)
    hpd_test_program(${name}_tests ${ARG_TESTS})
    # As one, in every preset: each alone would read GoogleTest and most headers of the folder again.
    set_target_properties(${name}_tests PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 8)
    target_link_libraries(${name}_tests PRIVATE hpd_${name} ${ARG_TEST_LIBS})
    foreach(source ${ARG_TESTS})
      cmake_path(GET source FILENAME file)
      hpd_unit_test(${name} ${source} ${name}_tests --file=${file})
    endforeach()
  endif()
  foreach(source ${ARG_THREAD_TESTS})
    hpd_thread_test(${name} ${source} hpd_${name} ${ARG_TEST_LIBS})
  endforeach()
  if(HPD_FUZZ_TARGETS)
    foreach(source ${ARG_FUZZ})
      hpd_fuzz_target(${name} ${source})
    endforeach()
  endif()
endfunction()
