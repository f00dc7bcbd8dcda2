import type { Command } from "commander";
import { parsePublicUrl } from "../../shared/public-url.ts";
import { UserError } from "../command-line/errors.ts";
import { commonOptions } from "../command-line/session.ts";
import { readTarget } from "../platform/target.ts";
import { loadWrangler } from "../platform/wrangler.ts";

/**
 * Checks `--status-list`: signatures would name addresses that begin with `PUBLIC_URL`, so there must be one (contract
 * section 14).
 *
 * @param wanted undefined when the option was not given
 * @throws UserError when status lists are wanted and wrangler.toml has no usable `PUBLIC_URL`
 */
export function checkedStatusList(wanted: boolean | undefined, command: Command): boolean | undefined {
  if (!wanted) return wanted;
  const { env: environment } = commonOptions(command);
  assertPublicUrl(readTarget(loadWrangler(), environment).publicUrl, environment);
  return true;
}

/** @param environment undefined for local state, where the URL may be http */
export function assertPublicUrl(text: string, environment: string | undefined): void {
  const section = environment === undefined ? "[vars]" : `[env.${environment}.vars]`;
  const example = 'such as "https://badges.example.com"';
  if (text === "") {
    throw new UserError(
      `Status lists need the service's address: set PUBLIC_URL in ${section} of wrangler.toml, ${example}, and deploy.`,
    );
  }
  const url = parsePublicUrl(text);
  if (url === null || (environment !== undefined && !url.startsWith("https://"))) {
    throw new UserError(`PUBLIC_URL in ${section} of wrangler.toml is not an https URL, ${example}.`);
  }
}
