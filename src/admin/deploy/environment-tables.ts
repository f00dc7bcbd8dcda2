import { UserError } from "../command-line/errors.ts";

/** Names of environments become part of the names of Workers, databases and queues. */
const NAME = /^[a-z][a-z0-9-]{0,19}$/;

/** The environment that others are copied from. */
const TEMPLATE = "production";

const HEADER = /^\s*\[\[?env\.production(?=[.\]])/;
/** What only one environment can have: data, places, addresses. */
const OWN = /^\s*(database_id|HOME_\d+|route|routes)\s*=/;
/** Keys whose values are names of resources in the account; `name` is one only in the environment's own table. */
const RESOURCE = /^\s*(?:database_name|queue|dead_letter_queue)\s*=\s*"/;
const OWN_TABLE = /^\s*\[env\.production\]/;
const FURTHER_HOME = /^\s*(?:binding\s*=\s*"\w+_\d+"|queue\s*=\s*"[^"]*-\d{1,3}")/m;

/**
 * Adds an environment: the tables of production with other names of its Worker, databases, queues and counters, and without its
 * data, places and addresses. Comments stay with production. wrangler reads the result before it is kept.
 *
 * @param text wrangler.toml, as far as wrangler-toml.ts knows TOML
 * @throws UserError for a name that resources cannot have
 */
export function withEnvironment(text: string, environment: string): string {
  if (!NAME.test(environment)) {
    throw new UserError(`"${environment}" cannot be an environment: use up to 20 of a-z, 0-9 and hyphens.`);
  }
  const counters = nextCounters(text);
  const tables = text
    .split(/^(?=\s*\[)/m)
    .filter((table) => HEADER.test(table) && !FURTHER_HOME.test(table))
    .map((table) => {
      const isOwn = OWN_TABLE.test(table);
      const lines = withoutOwn(table.split("\n")).map((line) => {
        if (RESOURCE.test(line) || (isOwn && /^\s*name\s*=/.test(line))) return renamed(line, environment);
        if (/^\s*namespace_id\s*=/.test(line)) return line.replace(/"[^"]*"/, `"${counters.next().value}"`);
        if (/^\s*PUBLIC_URL\s*=/.test(line)) return 'PUBLIC_URL = ""';
        return line.replace(/^(\s*ENVIRONMENT\s*=\s*)"[^"]*"/, `$1"${environment}"`);
      });
      return lines.join("\n").replace(HEADER, (header) => header.replace(TEMPLATE, environment));
    });
  const rule = `# ${"-".repeat(117)}\n# ${environment}, made from [env.${TEMPLATE}] by deploy --env ${environment}.\n`;
  return `${text.trimEnd()}\n\n${rule}\n${tables.join("\n\n")}\n`;
}

/** Without comments, blank lines, and what only one environment can have, of which routes may be on several lines. */
function withoutOwn(lines: readonly string[]): string[] {
  let isSkipping = false;
  return lines.filter((line) => {
    if (isSkipping) {
      isSkipping = !/^\s*\]/.test(line);
      return false;
    }
    if (!OWN.test(line)) return !/^\s*(#|$)/.test(line);
    isSkipping = /\[\s*(#.*)?$/.test(line);
    return false;
  });
}

/** The name of a resource, with the environment in place of `production`, or behind it. */
const renamed = (line: string, environment: string): string =>
  line.replace(/"([^"]*)"/, (_, name: string) =>
    name.includes(TEMPLATE) ? `"${name.replace(TEMPLATE, environment)}"` : `"${name}-${environment}"`,
  );

/** IDs of rate-limit counters that no environment has; counters of one ID would count together. */
function* nextCounters(text: string): Generator<number> {
  const used = [...text.matchAll(/^\s*namespace_id\s*=\s*"(\d+)"/gm)].map(([, id]) => Number(id));
  for (let id = Math.floor(Math.max(0, ...used) / 10) * 10 + 11; ; id++) yield id;
}
