import m0000 from "./0000_tables.sql";
import m0001 from "./0001_used_keys.sql";
import m0002 from "./0002_user_badges_by_end.sql";
import m0003 from "./0003_latest_time.sql";
import journal from "./meta/_journal.json";

export default {
  journal,
  migrations: {
    m0000,
    m0001,
    m0002,
    m0003,
  },
};
