import { DEFAULT_USER_CLAIM, ISSUER_DEADLINE_MILLISECONDS } from "../../shared/limits/user-token-limits.ts";
import { ProviderError } from "../../shared/openid/fetch-json.ts";
import { discoverKeySet } from "../../shared/openid/provider.ts";
import { checkOutboundUrl, describeUrlRefusal } from "../../shared/outbound-url.ts";
import { negatable, type OptionValues, option } from "../command-line/command.ts";
import { UserError } from "../command-line/errors.ts";
import type { ShownApplication } from "./record.ts";

/** Options that let an identity provider say who has logged in (contract section 22). */
export const USER_OPTIONS = {
  userIssuer: negatable(
    option("--user-issuer <url>", "require a user token of this OpenID provider at every login", String),
    "let a device name any user",
  ),
  userAudience: option(
    "--user-audience <audience>",
    "what the token's aud must contain: for an ID token the app's client ID",
    String,
  ),
  userClaim: option("--user-claim <name>", `the claim that contains the user ID (${DEFAULT_USER_CLAIM})`, String),
  observe: option("--observe", "only count logins by user token (see stats), and refuse none yet"),
  unchecked: option("--unchecked", "skip the check of the provider's discovery document"),
};

const NO_USERS = { userIssuer: null, userAudience: null, userClaim: DEFAULT_USER_CLAIM, userObserve: false };

/**
 * Reads the options, and checks them against the provider's discovery document.
 *
 * @returns undefined when no option was given; otherwise all columns, because they are replaced together
 * @throws UserError
 */
export async function readUserOptions(options: OptionValues<typeof USER_OPTIONS>, local: boolean) {
  const { userIssuer, userAudience, userClaim = DEFAULT_USER_CLAIM, observe = false, unchecked = false } = options;
  if (userIssuer === undefined || userIssuer === null) {
    const hasNoOtherOptions = userAudience === undefined && options.userClaim === undefined && !observe && !unchecked;
    if (!hasNoOtherOptions) throw new UserError("The options of verified users go together: give --user-issuer too.");
    return userIssuer === null ? NO_USERS : undefined;
  }
  if (userAudience === undefined || userAudience.trim() === "") {
    throw new UserError("Give --user-audience too: for ID tokens it is the app's client ID.");
  }
  if (userClaim.trim() === "") throw new UserError("The name of a claim must not be blank: correct --user-claim.");
  const check = checkOutboundUrl(userIssuer, { local });
  if (!check.ok) throw new UserError(describeUrlRefusal(check.reason).replaceAll("webhook URL", "issuer's URL"));
  if (check.url.search !== "")
    throw new UserError("An issuer's URL must not have a query: leave out the question mark.");
  if (!unchecked) await checkIssuer(userIssuer, local);
  return { userIssuer, userAudience, userClaim, userObserve: observe };
}

async function checkIssuer(issuer: string, local: boolean): Promise<void> {
  try {
    const signal = AbortSignal.timeout(ISSUER_DEADLINE_MILLISECONDS);
    const keySetUrl = await discoverKeySet(issuer, { local, signal });
    const check = checkOutboundUrl(keySetUrl, { local });
    if (!check.ok) throw new ProviderError("refused-url", keySetUrl, check.reason);
  } catch (error) {
    if (!(error instanceof ProviderError)) throw error;
    const problem = PROVIDER_PROBLEMS[error.fault](error);
    throw new UserError(`${problem} Correct --user-issuer, or skip this check with --unchecked.`);
  }
}

const PROVIDER_PROBLEMS: Readonly<Record<ProviderError["fault"], (error: ProviderError) => string>> = {
  "refused-url": ({ url, detail }) =>
    `The provider names ${url} for its keys, which the service will not call (${detail}).`,
  unreachable: ({ url }) => `${url} cannot be reached.`,
  timeout: ({ url }) => `${url} did not respond within ${ISSUER_DEADLINE_MILLISECONDS / 1000} seconds.`,
  "wrong-status": ({ url, detail }) => `${url} responded with ${detail}, not with 200; redirects are not followed.`,
  "too-large": ({ url }) => `${url} responded with more than a discovery document can have.`,
  malformed: ({ url }) => `${url} is not a discovery document of OpenID Connect.`,
  "other-issuer": ({ url, detail }) =>
    `${url} names the issuer ${JSON.stringify(detail)}: it must be exactly the same.`,
  "no-usable-key": ({ url }) => `${url} has no key that can verify a token.`,
};

/** For `application show`. */
export function userFields({ userIssuer, userAudience, userClaim, userObserve }: ShownApplication) {
  if (userIssuer === null) return { "Users are verified by": "nobody: a device can name any user" };
  return {
    "Users are verified by": userIssuer,
    "Audience of user tokens": userAudience,
    "User ID is in the claim": userClaim,
    "Logins without a token": userObserve ? "counted, not refused" : "refused",
  };
}
