# What fuzz targets begin with, beside the files in testdata/TARGET: the texts that tests already have.
# HPD_SEEDS_TARGET lists the files; what has to be made of others is made by hpd_fuzz_seeds.
add_custom_target(hpd_fuzz_seeds)
set(directory ${CMAKE_BINARY_DIR}/seeds)
file(MAKE_DIRECTORY ${directory})
file(GLOB traces CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tests/data/traces/*.textproto
     ${PROJECT_SOURCE_DIR}/tests/queries/*/in*.textproto)
foreach(trace ${traces})
  cmake_path(GET trace STEM name)
  cmake_path(GET trace PARENT_PATH topic)
  cmake_path(GET topic FILENAME topic)
  set(seed ${directory}/${topic}_${name}.pb)
  add_custom_command(OUTPUT ${seed}
    COMMAND protobuf::protoc -I${PROJECT_SOURCE_DIR}/proto --encode=perfetto.protos.Trace
            ${PROJECT_SOURCE_DIR}/proto/trace.proto < ${trace} > ${seed}
    DEPENDS ${trace} ${PROJECT_SOURCE_DIR}/proto/trace.proto VERBATIM)
  list(APPEND HPD_SEEDS_trace_reader_fuzz ${seed})
endforeach()
add_custom_target(hpd_fuzz_traces DEPENDS ${HPD_SEEDS_trace_reader_fuzz})
add_dependencies(hpd_fuzz_seeds hpd_fuzz_traces)
set(HPD_SEEDS_loaded_trace_fuzz ${HPD_SEEDS_trace_reader_fuzz})
set(HPD_SEEDS_text_format_fuzz ${HPD_SEEDS_trace_reader_fuzz} ${traces})
file(GLOB HPD_SEEDS_trace_database_fuzz CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tests/queries/*/q.sql)
