const OTHER_TABLE = /^\[+env\.(?:(?!production[.\]])|production\.routes\])/;
const FURTHER_HOME = /^\[\[env\.production\.(d1_databases|queues\.\w+)\]\]\n(.*\n)*?(binding|queue) = "[\w-]+[_-]\d+"/;
/** What `deploy --env` of another environment writes above its tables. */
const RULE = /\n# -+\n# .+, made from \[env\.production\] .*\n\n/g;

/**
 * wrangler.toml before its first deployment. Where the service is deployed, it has the homes' places and IDs, its addresses, and
 * perhaps other environments (docs/operations.md).
 */
export function undeployed(text: string): string {
  const tables = text.replaceAll(RULE, "").split(/^(?=\[)/m);
  const own = tables.filter((table) => !OTHER_TABLE.test(table) && !FURTHER_HOME.test(table));
  return own.map((table) => (/^\[+env\.production/.test(table) ? before(table) : table)).join("");
}

const before = (table: string): string =>
  table
    .replaceAll(/^(database_id|HOME_\d+) = .*\n/gm, "")
    .replace(/^routes? = (?:\[[^\]]*\])?.*\n/m, "")
    .replace(/^workers_dev = .*/m, "workers_dev = true")
    .replace(/^PUBLIC_URL = .*/m, 'PUBLIC_URL = ""');
