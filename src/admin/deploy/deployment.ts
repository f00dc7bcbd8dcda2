import type * as z from "zod";
import { UserError } from "../command-line/errors.ts";
import { type Account, openAccount } from "../platform/cloudflare.ts";
import { type BoundHome, readTarget, type Target } from "../platform/target.ts";
import type { Wrangler } from "../platform/wrangler.ts";
import { editWranglerToml } from "../platform/wrangler-toml.ts";

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

  /** wrangler.toml as it is now. */
  get target(): Target {
    return readTarget(this.wrangler, this.environment);
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

/** @param noteEmpty given: where the account cannot be opened it is taken for empty, and this is told why; otherwise an error */
export async function openDeployment(
  wrangler: Wrangler,
  environment: string,
  noteEmpty?: (line: string) => void,
): Promise<Deployment> {
  const { accountId } = readTarget(wrangler, environment);
  const account = await openAccount(accountId).catch((error: unknown) => {
    if (noteEmpty === undefined || !(error instanceof UserError)) throw error;
    noteEmpty(`This is what an empty account would need: yours cannot be looked at. ${error.message}`);
    return null;
  });
  return new Deployment(wrangler, environment, account);
}
