import { UserError } from "../command-line/errors.ts";

/**
 * An environment's name becomes part of the names of its Worker, databases and queues. A number at the end would be a home's, and
 * queues of `-dead…` are dead letters (src/worker/index.ts).
 */
const NAME = /^(?!(?:.*-)?dead)(?!.*-\d{1,3}$)[a-z][a-z0-9-]{0,19}$/;

/** The environment that others are copied from. */
const TEMPLATE = "production";

const HEADER = /^\s*\[\[?env\.production(?=[.\]])/;
/** What only one environment can have: data, places, addresses. */
const OWN = /^\s*(database_id|HOME_\d+|route|routes)\s*=/;
const OWN_ROUTES = /^\s*\[\[?env\.production\.routes?\]/;
/** Keys whose values are names of resources in the account; `name` is one only in the environment's own table. */
const RESOURCE = /^\s*(?:database_name|queue|dead_letter_queue)\s*=\s*"/;
const OWN_TABLE = /^\s*\[env\.production\]/;
const FURTHER_HOME = /^\s*(?:binding\s*=\s*"\w+_\d+"|queue\s*=\s*"[^"]*-\d{1,3}")/m;

/**
 * Adds an environment: production's tables with new names for the Worker, databases, queues and counters, and without its
 * data, places and addresses. Comments are not copied. wrangler checks the result before it is saved.
 *
 * @param text wrangler.toml, in the subset of TOML that wrangler-toml.ts knows
 * @throws UserError for a name that resources cannot have
 */
export function withEnvironment(text: string, environment: string): string {
  if (!NAME.test(environment)) {
    throw new UserError(
      `"${environment}" cannot be the name of an environment: use up to 20 of a-z, 0-9 and hyphens, without a number after a hyphen at the end, or a word that begins with "dead".`,
    );
  }
  const counters = nextCounters(text);
  const tables = text
    .split(/^(?=\s*\[)/m)
    .filter((table) => HEADER.test(table) && !OWN_ROUTES.test(table) && !FURTHER_HOME.test(table))
    .map((table) => {
      const isOwn = OWN_TABLE.test(table);
      const lines = withoutOwn(table.split("\n")).map((line) => {
        if (RESOURCE.test(line) || (isOwn && /^\s*name\s*=/.test(line))) return renamed(line, environment);
        if (/^\s*namespace_id\s*=/.test(line)) return line.replace(/"[^"]*"/, `"${counters.next().value}"`);
        if (/^\s*PUBLIC_URL\s*=/.test(line)) return 'PUBLIC_URL = ""';
        // Its only address: production may have a domain instead.
        if (isOwn && /^\s*workers_dev\s*=/.test(line)) return "workers_dev = true";
        return line.replace(/^(\s*ENVIRONMENT\s*=\s*)"[^"]*"/, `$1"${environment}"`);
      });
      return lines.join("\n").replace(HEADER, (header) => header.replace(TEMPLATE, environment));
    });
  const rule = `# ${"-".repeat(117)}\n# ${environment}, made from [env.${TEMPLATE}] by deploy --env ${environment}.\n`;
  return `${text.trimEnd()}\n\n${rule}\n${tables.join("\n\n")}\n`;
}

/** Drops comments, blank lines, and what only one environment can have. Its value may go on over several lines. */
function withoutOwn(lines: readonly string[]): string[] {
  let depth = 0;
  return lines.filter((line) => {
    if (depth === 0 && !OWN.test(line)) return !/^\s*(#|$)/.test(line);
    depth += bracketsOpenedBy(line);
    return false;
  });
}

/** How many brackets a line opens, minus those that it closes; negative if it closes more. */
function bracketsOpenedBy(line: string): number {
  const outsideTexts = line.replaceAll(/"(?:\\.|[^"\\])*"|'[^']*'/g, "").replace(/#.*/, "");
  return [...outsideTexts].reduce((sum, one) => sum + ("[{".includes(one) ? 1 : "]}".includes(one) ? -1 : 0), 0);
}

/** Replaces `production` in the name of a resource with the environment, or appends the environment. */
const renamed = (line: string, environment: string): string =>
  line.replace(/"([^"]*)"/, (_, name: string) =>
    name.includes(TEMPLATE) ? `"${name.replace(TEMPLATE, environment)}"` : `"${name}-${environment}"`,
  );

/** Unused IDs of rate-limit counters: counters with the same ID would count together. */
function* nextCounters(text: string): Generator<number> {
  const used = [...text.matchAll(/^\s*namespace_id\s*=\s*"(\d+)"/gm)].map(([, id]) => Number(id));
  for (let id = Math.floor(Math.max(0, ...used) / 10) * 10 + 11; ; id++) yield id;
}
