import type * as z from "zod";
import { UserError } from "../command-line/errors.ts";
import { type Account, openAccount } from "../platform/cloudflare.ts";
import { type BoundHome, definedEnvironments, readTarget, type Target } from "../platform/target.ts";
import type { Wrangler } from "../platform/wrangler.ts";
import { editWranglerToml, withDraft } from "../platform/wrangler-toml.ts";
import { withEnvironment } from "./environment-tables.ts";

/** What the steps of a deployment work on. */
export class Deployment {
  readonly environment: string;
  readonly wrangler: Wrangler;
  readonly #account: Account | null;

  /** @param account null without a login: only wrangler.toml can be read then */
  constructor(wrangler: Wrangler, environment: string, account: Account | null) {
    this.wrangler = wrangler;
    this.environment = environment;
    this.#account = account;
  }

  /** Whether there is no account, so that only wrangler.toml can be read. */
  get isOffline(): boolean {
    return this.#account === null;
  }

  /** @throws UserError without credentials */
  get account(): Account {
    if (this.#account === null) throw new UserError("Log in first: npx wrangler login.");
    return this.#account;
  }

  /** Looks something up in the account. @returns null when it does not exist, and without an account */
  async find<Shape extends z.ZodType>(result: Shape, path: string): Promise<z.output<Shape> | null> {
    return this.#account?.find(result, path) ?? null;
  }

  /** Whether wrangler.toml has the environment. */
  get isDefined(): boolean {
    return definedEnvironments(this.wrangler).includes(this.environment);
  }

  /** What wrangler.toml has for the environment, or will have for a new one. */
  get target(): Target {
    const { wrangler, environment } = this;
    return readDefined(wrangler, environment) ?? readNew(wrangler, environment);
  }

  /** A home as wrangler.toml binds it now; undefined when it is unbound. */
  home(number: number): BoundHome | undefined {
    return this.target.homes.find((home) => home.number === number);
  }

  edit(change: (text: string) => string): void {
    editWranglerToml(this.wrangler, this.environment, change);
  }
}

const readDefined = (wrangler: Wrangler, environment: string): Target | undefined =>
  definedEnvironments(wrangler).includes(environment) ? readTarget(wrangler, environment) : undefined;

const readNew = (wrangler: Wrangler, environment: string): Target =>
  withDraft(
    (text) => withEnvironment(text, environment),
    (draft) => readTarget(wrangler, environment, draft),
  );

/**
 * @param noteEmpty if given, an account that cannot be opened counts as empty, and this gets the reason
 * @param mayBeNew whether wrangler.toml may lack the environment
 */
export async function openDeployment(
  wrangler: Wrangler,
  environment: string,
  noteEmpty?: (line: string) => void,
  mayBeNew = false,
): Promise<Deployment> {
  const defined = mayBeNew ? readDefined(wrangler, environment) : readTarget(wrangler, environment);
  const { accountId } = defined ?? readNew(wrangler, environment);
  const account = await openAccount(accountId).catch((error: unknown) => {
    if (noteEmpty === undefined || !(error instanceof UserError)) throw error;
    noteEmpty(`This is what an empty account would need, because yours cannot be read. ${error.message}`);
    return null;
  });
  return new Deployment(wrangler, environment, account);
}
