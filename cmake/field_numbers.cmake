# hpd_field_numbers(TARGET PROTO NAMESPACE HEADER): the field numbers of proto/PROTO.proto as HEADER, for TARGET and whoever
# links it (cmake/proto_fields.awk).
function(hpd_field_numbers target proto namespace header)
  set(source ${PROJECT_SOURCE_DIR}/proto/${proto}.proto)
  set(script ${PROJECT_SOURCE_DIR}/cmake/proto_fields.awk)
  set(generated ${PROJECT_BINARY_DIR}/generated)
  cmake_path(GET header PARENT_PATH folder)
  add_custom_command(
    OUTPUT ${generated}/${header}
    COMMAND ${CMAKE_COMMAND} -E make_directory ${generated}/${folder}
    COMMAND awk -v space=${namespace} -f ${script} ${source} >${generated}/${header}
    DEPENDS ${source} ${script})
  target_sources(${target} PRIVATE ${generated}/${header})
  target_include_directories(${target} PUBLIC ${generated})
endfunction()
