select name, map_name, cumulative_size
from experimental_flamegraph(8300973884377,2,'native')
order by abs(cumulative_size) desc;
