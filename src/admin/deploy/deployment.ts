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

  /** @param account null where only wrangler.toml can be looked at */
  constructor(wrangler: Wrangler, environment: string, account: Account | null) {
    this.wrangler = wrangler;
    this.environment = environment;
    this.#account = account;
  }

  /** Whether only wrangler.toml can be looked at. */
  get isOffline(): boolean {
    return this.#account === null;
  }

  /** @throws UserError without credentials */
  get account(): Account {
    if (this.#account === null) throw new UserError("Log in first: npx wrangler login.");
    return this.#account;
  }

  /** Looks something up in the account. @returns null when it is not there, or nobody is logged in */
  async find<Shape extends z.ZodType>(result: Shape, path: string): Promise<z.output<Shape> | null> {
    return this.#account?.find(result, path) ?? null;
  }

  /** Whether wrangler.toml has the environment. */
  get isDefined(): boolean {
    return definedEnvironments(this.wrangler).includes(this.environment);
  }

  /** wrangler.toml as it is now; of a new environment as it is to be. */
  get target(): Target {
    const { wrangler, environment } = this;
    return readDefined(wrangler, environment) ?? readNew(wrangler, environment);
  }

  /** A home as wrangler.toml binds it now; undefined when it does not. */
  home(number: number): BoundHome | undefined {
    return this.target.homes.find((home) => home.number === number);
  }

  /** Changes wrangler.toml. */
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
 * @param noteEmpty given: where the account cannot be opened it is taken for empty, and this is told why; otherwise an error
 * @param mayBeNew whether an environment that wrangler.toml does not have yet is to be made
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
    noteEmpty(`This is what an empty account would need: yours cannot be looked at. ${error.message}`);
    return null;
  });
  return new Deployment(wrangler, environment, account);
}
