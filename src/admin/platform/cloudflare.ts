import * as z from "zod";
import { UserError } from "../command-line/errors.ts";
import { isAboutRights, lackingRight, TOKENS_PAGE } from "./rights.ts";
import { runWrangler } from "./wrangler.ts";

/** Where the platform's API is, unless `CLOUDFLARE_API_BASE_URL` names another place. wrangler reads the same variable. */
const API = "https://api.cloudflare.com/client/v4";

/** D1 ends a statement after 30 seconds. */
const TIMEOUT_MILLISECONDS = 60_000;

const envelope = z.object({
  success: z.boolean(),
  errors: z.array(z.object({ code: z.number(), message: z.string() })).default([]),
  result: z.unknown(),
});

/** A call that the platform refused. */
export class RefusedCall extends UserError {
  /** HTTP status. */
  readonly status: number;
  /** The platform's words, with its codes. */
  readonly reason: string;

  constructor(what: string, status: number, reason: string) {
    super(`The platform refused ${what}: ${reason}. Run the command again; it goes on where it stopped.`);
    this.status = status;
    this.reason = reason;
  }
}

/** The platform gave no response, so nobody knows whether the call was carried out. */
export class LostCall extends UserError {
  constructor(what: string, options?: ErrorOptions) {
    super(`The platform gave no response to ${what}: run the command again; it finds out what was done.`, options);
  }
}

interface Call {
  method?: "GET" | "POST" | "PUT" | "DELETE";
  /** Below the account, such as `/queues`. */
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
   * @throws RefusedCall when the platform refuses otherwise
   * @throws LostCall without a response
   */
  async call<Shape extends z.ZodType>(result: Shape, { path, ...rest }: Call): Promise<z.output<Shape>> {
    return result.parse(await request(this.#headers, { path: `/accounts/${this.id}${path}`, ...rest }));
  }

  /** Looks something up. @returns null when there is no such thing */
  async find<Shape extends z.ZodType>(result: Shape, path: string): Promise<z.output<Shape> | null> {
    try {
      return await this.call(result, { path });
    } catch (error) {
      if (error instanceof RefusedCall && error.status === 404) return null;
      throw error;
    }
  }
}

/**
 * The account to work on, with the credentials that wrangler would use: `CLOUDFLARE_API_TOKEN`, or those of `wrangler login`.
 *
 * @param configured `account_id` of wrangler.toml
 * @throws UserError without credentials, or when it is not clear which account is meant
 */
export async function openAccount(configured: string | undefined): Promise<Account> {
  const headers = await readCredentials();
  const id = process.env.CLOUDFLARE_ACCOUNT_ID || configured;
  return new Account(id ?? (await onlyAccount(headers)), headers);
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

async function request(
  headers: Readonly<Record<string, string>>,
  { method = "GET", path, body }: Call,
): Promise<unknown> {
  const response = await fetch(`${process.env.CLOUDFLARE_API_BASE_URL || API}${path}`, {
    method,
    headers: { ...headers, ...(body && { "content-type": "application/json" }) },
    signal: AbortSignal.timeout(TIMEOUT_MILLISECONDS),
    ...(body && { body: JSON.stringify(body) }),
  }).catch((error: unknown) => {
    throw new LostCall(`${method} ${path}`, { cause: error });
  });
  const { status } = response;
  const parsed = envelope.safeParse(await response.json().catch(() => undefined));
  if (!parsed.success) throw new LostCall(`${method} ${path} (status ${status}, and no JSON)`);
  const { success, errors, result } = parsed.data;
  if (success) return result;
  const reason = errors.map(({ message, code }) => `${message} [code: ${code}]`).join(", ") || `status ${status}`;
  const isUnauthorized = status === 401 || status === 403 || errors.some(({ code }) => isAboutRights(code));
  throw isUnauthorized ? lackingRight(path, reason) : new RefusedCall(`${method} ${path}`, status, reason);
}
