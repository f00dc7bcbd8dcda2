import { Argument, Command, Option, type OptionValueSource } from "commander";
import { administrator } from "../history/note.ts";
import { ensureLocalSealing } from "../sealing-key/local.ts";
import { UserError } from "./errors.ts";
import { createOutput, type Output } from "./output.ts";
import type { HomesOpener, Session } from "./session.ts";
import { examples } from "./shell.ts";

/** The script's commands as data: one declaration has what help, parsing and printing need. */

/** An argument of a command, which gets it as a `Value`. */
export interface DeclaredArgument<Value> {
  /** Such as `<id>`. */
  flags: string;
  description: string;
  /** As the examples of help pages show it. */
  example: string;
  parse(text: string): Value;
}

export const argument = <Value>(
  flags: string,
  description: string,
  example: string,
  parse: (text: string) => Value,
): DeclaredArgument<Value> => ({ flags, description, example, parse });

/** An option of a command, which gets it as a `Value`, or undefined if it was not given. */
export interface DeclaredOption<Value> {
  /** The option and its `--no-` form, if it has one. */
  forms: readonly Option[];
  value?: Value;
}

/** Keyed by the names under which the command gets the values. */
type DeclaredOptions = Readonly<Record<string, DeclaredOption<unknown>>>;

export type OptionValues<Options extends DeclaredOptions> = {
  [Name in keyof Options]: Options[Name] extends DeclaredOption<infer Value> ? Value : never;
};

/** Wraps an option's value, because commander turns null into "". */
class Parsed {
  readonly value: unknown;

  constructor(value: unknown) {
    this.value = value;
  }
}

/** A command whose options may be null. */
export class AdminCommand extends Command {
  override createCommand(name?: string): AdminCommand {
    return new AdminCommand(name);
  }

  override setOptionValueWithSource(key: string, value: unknown, source?: OptionValueSource): this {
    return super.setOptionValueWithSource(key, value instanceof Parsed ? value.value : value, source);
  }
}

/** @param fallback the value when the option is not given */
export function option(flags: string, description: string): DeclaredOption<true | undefined>;
export function option<Value>(
  flags: string,
  description: string,
  parse: (text: string) => Value,
): DeclaredOption<Value | undefined>;
export function option<Value>(
  flags: string,
  description: string,
  parse: (text: string) => Value,
  fallback: Value,
): DeclaredOption<Value>;
export function option(flags: string, description: string, parse?: (text: string) => unknown, fallback?: unknown) {
  const form = new Option(flags, description).default(fallback);
  return { forms: [parse === undefined ? form : form.argParser((text) => new Parsed(parse(text)))] };
}

export const requiredOption = <Value>(
  flags: string,
  description: string,
  parse: (text: string) => Value,
): DeclaredOption<Value> => ({
  forms: option(flags, description, parse).forms.map((form) => form.makeOptionMandatory()),
});

export const choice = <Value extends string>(
  flags: string,
  description: string,
  choices: readonly Value[],
): DeclaredOption<Value | undefined> => ({ forms: [new Option(flags, description).choices(choices)] });

/** Adds `--no-x` to `--x`. Its value is false, or null if `--x` takes a value. */
export function negatable(
  on: DeclaredOption<true | undefined>,
  description: string,
): DeclaredOption<boolean | undefined>;
export function negatable<Value>(on: DeclaredOption<Value>, description: string): DeclaredOption<Value | null>;
export function negatable({ forms }: DeclaredOption<unknown>, description: string) {
  const opposites = forms.map((form) =>
    new Option(`--no-${form.name()}`, description).preset(new Parsed(form.isBoolean() ? false : null)),
  );
  return { forms: [...forms, ...opposites] };
}

/** An option that cannot be combined with another. @param other the name of the other's value */
export const conflictsWith = <Value>(other: string, { forms }: DeclaredOption<Value>): DeclaredOption<Value> => ({
  forms: forms.map((form) => form.conflicts(other)),
});

/** How a command was called. */
export interface Invocation {
  /** Undefined for local state. */
  environment: string | undefined;
  output: Output;
  /**
   * Opens the homes that the command works on, does the work, and closes the homes.
   *
   * @param seals whether the work needs a sealing key; local state gets its first one if it has none
   */
  inSession(work: (session: Session) => Promise<void>, seals?: boolean): Promise<void>;
}

/** Adds a command, or a noun with its commands, to the program. */
export type RegisterCommand = (parent: Command, open: HomesOpener) => void;

interface HelpText {
  summary: string;
  description: string;
}

interface Declaration<Values extends unknown[], Options extends DeclaredOptions> extends HelpText {
  arguments?: { readonly [Index in keyof Values]: DeclaredArgument<Values[Index]> };
  options?: Options;
  /** What follows the arguments in the help page's examples; default: nothing. */
  examples?: readonly string[];
}

type Given<Values extends unknown[], Options extends DeclaredOptions> = [...Values, OptionValues<Options>];

/** A noun and its commands, in the order of its help page. */
export const group =
  (
    name: string,
    { summary, description, commands }: HelpText & { commands: readonly RegisterCommand[] },
  ): RegisterCommand =>
  (parent, open) => {
    const noun = parent.command(name).summary(summary).description(description);
    for (const add of commands) add(noun, open);
  };

/** A command that opens the databases itself, so it can check its options first. */
export const rawCommand =
  <Values extends unknown[] | [] = [], Options extends DeclaredOptions = Record<never, never>>(
    name: string,
    declaration: Declaration<Values, Options> & {
      action(invocation: Invocation, ...given: Given<Values, Options>): Promise<void>;
    },
  ): RegisterCommand =>
  (parent, open) => {
    const added = parent.command(name).summary(declaration.summary).description(declaration.description);
    const typed = parent.parent === null ? [name] : [parent.name(), name];
    for (const { flags, description, example, parse } of declaration.arguments ?? []) {
      added.addArgument(new Argument(flags, description).argParser(parse));
      typed.push(example);
    }
    for (const [key, { forms }] of Object.entries(declaration.options ?? {})) {
      for (const form of forms) added.addOption(Object.assign(form, { attributeName: () => key }));
    }
    const { examples: endings = [""], action } = declaration;
    added.addHelpText("after", examples(...endings.map((words) => [...typed, words].filter(Boolean).join(" "))));
    added.action((...given: Given<Values, Options>) => action(toInvocation(added, open), ...given));
  };

/** A command that works on the databases, and prints its result. */
export const command = <
  Result,
  Values extends unknown[] | [] = [],
  Options extends DeclaredOptions = Record<never, never>,
>(
  name: string,
  declaration: Declaration<Values, Options> & {
    seals?: boolean;
    work(session: Session, ...given: Given<Values, Options>): Promise<Result>;
    /** What `--json` prints; default: the result itself. */
    json?(result: NoInfer<Result>, ...given: Given<Values, Options>): unknown;
    text(result: NoInfer<Result>, session: Session, ...given: Given<Values, Options>): string;
    /** Why the command fails, if it does so after its result is printed. */
    failure?(result: NoInfer<Result>, session: Session, ...given: Given<Values, Options>): string | undefined;
  },
): RegisterCommand => {
  const { work, json, text, failure, seals } = declaration;
  return rawCommand(name, {
    ...declaration,
    action: ({ inSession, output }, ...given) =>
      inSession(async (session) => {
        const result = await work(session, ...given);
        output.result(json === undefined ? result : json(result, ...given), () => text(result, session, ...given));
        const reason = failure?.(result, session, ...given);
        if (reason !== undefined) throw new UserError(reason);
      }, seals),
  });
};

/** The options that every command takes. */
interface CommonOptions {
  env?: string;
  json?: true;
  actor?: string;
}

function toInvocation(command: Command, open: HomesOpener): Invocation {
  const { env: environment, json = false, actor } = command.optsWithGlobals<CommonOptions>();
  const output = createOutput(json, environment);
  const reopen = () => open(environment);
  return {
    environment,
    output,
    async inSession(work, seals = false) {
      const { homes, close, backend, wake } = await reopen();
      try {
        if (seals && "local" in backend) await ensureLocalSealing(homes, backend.local);
        await work({ homes, output, backend, actor: administrator(actor), wake, reopen });
      } finally {
        await close();
      }
    },
  };
}
