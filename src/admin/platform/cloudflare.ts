import { setTimeout as wait } from "node:timers/promises";
import * as z from "zod";
import { UserError } from "../command-line/errors.ts";
import { adviceFor, isAboutRights, lackingRight, TOKENS_PAGE } from "./rights.ts";
import { runWrangler } from "./wrangler.ts";

/** The platform's API, unless `CLOUDFLARE_API_BASE_URL` names another address. wrangler reads the same variable. */
const API = "https://api.cloudflare.com/client/v4";

/** D1 ends a statement after 30 seconds. */
const TIMEOUT_MILLISECONDS = 60_000;

const envelope = z.object({
  success: z.boolean(),
  errors: z.array(z.object({ code: z.number(), message: z.string() })).default([]),
  result: z.unknown(),
});

/** A call that the platform refused. */
export class CloudflareApiError extends UserError {
  /** HTTP status. */
  readonly status: number;
  /** The platform's message, with its codes. */
  readonly reason: string;
  /** Whether the error's own message says what to do about it. */
  readonly isKnown: boolean;

  constructor(what: string, status: number, reason: string, codes: readonly number[] = []) {
    const advice = adviceFor(codes);
    super(advice ?? `The platform refused ${what}: ${reason}. Run the command again; it continues where it stopped.`);
    this.status = status;
    this.reason = reason;
    this.isKnown = advice !== undefined;
  }
}

/** The platform gave no response, so it is unknown whether the call took effect. */
export class CloudflareNoResponse extends UserError {
  constructor(what: string, options?: ErrorOptions) {
    super(`The platform gave no response to ${what}: run the command again; it finds out what was done.`, options);
  }
}

interface ApiCall {
  method?: "GET" | "POST" | "PUT" | "DELETE";
  /** Relative to the account, such as `/queues`; the whole path for the few calls without an account. */
  path: string;
  /** Sent as JSON. */
  body?: object;
}

/** One account, through the platform's REST API (developers.cloudflare.com/api). */
export class Account {
  readonly id: string;
  readonly #headers: Readonly<Record<string, string>>;

  constructor(id: string, headers: Readonly<Record<string, string>>) {
    this.id = id;
    this.#headers = headers;
  }

  /**
   * Calls the API.
   *
   * @throws UserError when the token lacks the right, which it names
   * @throws CloudflareApiError when the platform refuses otherwise
   * @throws CloudflareNoResponse without a response
   */
  async call<Shape extends z.ZodType>(result: Shape, { path, ...rest }: ApiCall): Promise<z.output<Shape>> {
    return result.parse(await request(this.#headers, { path: `/accounts/${this.id}${path}`, ...rest }));
  }

  /**
   * Queries the platform's analytics (developers.cloudflare.com/analytics/graphql-api).
   *
   * @returns null when it has no such data, or the token lacks "Account, Account Analytics, Read"
   * @throws CloudflareNoResponse without a response
   */
  async analyse<Shape extends z.ZodType>(data: Shape, query: string): Promise<z.output<Shape> | null> {
    const response = await send({ method: "POST", path: "/graphql", body: { query } }, this.#headers);
    const body = z.object({ data: z.unknown() }).safeParse(await response.json().catch(() => undefined)).data;
    return data.safeParse(body?.data).data ?? null;
  }

  /** Looks something up. @returns null when there is no such thing */
  async find<Shape extends z.ZodType>(result: Shape, path: string): Promise<z.output<Shape> | null> {
    try {
      return await this.call(result, { path });
    } catch (error) {
      if (error instanceof CloudflareApiError && error.status === 404) return null;
      throw error;
    }
  }
}

/**
 * The account to work on, with the credentials that wrangler would use: `CLOUDFLARE_API_TOKEN`, or those of `wrangler login`.
 *
 * @param configured `account_id` of wrangler.toml
 * @throws UserError without credentials, or when it is unclear which account is meant
 */
export async function openAccount(configured: string | undefined): Promise<Account> {
  const chosen = process.env.CLOUDFLARE_ACCOUNT_ID || undefined;
  // wrangler takes the file's: half of the work would be done in each account.
  if (chosen !== undefined && configured !== undefined && chosen !== configured) {
    throw new UserError(
      `CLOUDFLARE_ACCOUNT_ID is ${chosen}, and account_id in wrangler.toml is ${configured}: unset the one, or change the other.`,
    );
  }
  const headers = await readCredentials();
  return new Account(configured ?? chosen ?? (await onlyAccount(headers)), headers);
}

const credentials = z.union([
  z.object({ token: z.string() }).transform(({ token }) => ({ authorization: `Bearer ${token}` })),
  z.object({ key: z.string(), email: z.string() }).transform(({ key, email }) => ({
    "x-auth-key": key,
    "x-auth-email": email,
  })),
]);

async function readCredentials(): Promise<Record<string, string>> {
  const token = process.env.CLOUDFLARE_API_TOKEN;
  if (token) return { authorization: `Bearer ${token}` };
  try {
    return credentials.parse(JSON.parse(await runWrangler(["auth", "token", "--json"])));
  } catch (error) {
    throw new UserError(
      `Log in first: npx wrangler login, or set CLOUDFLARE_API_TOKEN and CLOUDFLARE_ACCOUNT_ID (${TOKENS_PAGE}).`,
      { cause: error },
    );
  }
}

async function onlyAccount(headers: Readonly<Record<string, string>>): Promise<string> {
  const accounts = z
    .array(z.object({ id: z.string(), name: z.string() }))
    .parse(await request(headers, { path: "/accounts" }));
  const [only, ...others] = accounts;
  if (only !== undefined && others.length === 0) return only.id;
  const found = accounts.map(({ id, name }) => `${id} (${name})`).join(", ") || "none";
  throw new UserError(`Say which account: set CLOUDFLARE_ACCOUNT_ID. These credentials reach: ${found}.`);
}

/** The platform allows 1,200 calls in five minutes, and refuses calls for the rest of them (API: Rate limits). */
const MAX_TRIES = 4;
const MAX_RETRY_AFTER_SECONDS = 300;
/** For a 429 without `Retry-After`. */
const DEFAULT_RETRY_AFTER_SECONDS = 10;

/** Sends a call, and repeats it on 429: the platform does not carry out such a call. */
async function send({ method = "GET", path, body }: ApiCall, headers: Readonly<Record<string, string>>) {
  for (let attempt = 1; ; attempt++) {
    const response = await fetch(`${process.env.CLOUDFLARE_API_BASE_URL || API}${path}`, {
      method,
      headers: { ...headers, ...(body && { "content-type": "application/json" }) },
      signal: AbortSignal.timeout(TIMEOUT_MILLISECONDS),
      ...(body && { body: JSON.stringify(body) }),
    }).catch((error: unknown) => {
      throw new CloudflareNoResponse(`${method} ${path}`, { cause: error });
    });
    if (response.status !== 429 || attempt === MAX_TRIES) return response;
    await response.body?.cancel();
    const seconds = Number(response.headers.get("retry-after") ?? DEFAULT_RETRY_AFTER_SECONDS);
    const bounded = Number.isFinite(seconds) ? Math.min(seconds, MAX_RETRY_AFTER_SECONDS) : DEFAULT_RETRY_AFTER_SECONDS;
    process.stderr.write(`… the platform limits the rate of calls: trying again in ${bounded} s\n`);
    await wait(bounded * 1000);
  }
}

async function request(headers: Readonly<Record<string, string>>, call: ApiCall): Promise<unknown> {
  const { method = "GET", path } = call;
  const response = await send(call, headers);
  const { status } = response;
  const parsed = envelope.safeParse(await response.json().catch(() => undefined));
  if (!parsed.success) throw new CloudflareNoResponse(`${method} ${path} (status ${status}, and no JSON)`);
  const { success, errors, result } = parsed.data;
  if (success) return result;
  const reason = errors.map(({ message, code }) => `${message} [code: ${code}]`).join(", ") || `status ${status}`;
  const codes = errors.map(({ code }) => code);
  const isUnauthorized = status === 401 || status === 403 || codes.some(isAboutRights);
  if (isUnauthorized && adviceFor(codes) === undefined) throw lackingRight(path, reason);
  throw new CloudflareApiError(`${method} ${path}`, status, reason, codes);
}
