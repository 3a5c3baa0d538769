SELECT * FROM stack_profile_mapping;
SELECT * FROM stack_profile_frame;
SELECT * FROM stack_profile_callsite;
SELECT * FROM stack_profile_symbol;
