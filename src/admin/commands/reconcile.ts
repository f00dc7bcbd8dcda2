import { type Command, Option } from "commander";
import { seconds } from "../arguments.ts";
import { examples } from "../program.ts";

/** Adds `reconcile`. */
export function addReconcileCommand(program: Command): void {
  program
    .command("reconcile")
    .argument("[id]", "the application; all of them when left out")
    .summary("bring D1 and the allocators in line after one was restored")
    .description(
      "After D1 or an application's allocator object was restored to an older state: asks the running service to bring " +
        "the two in line, and watches it. No number is handed out twice either way; what this mends is invitations " +
        "whose numbers one of the two forgot. It can be repeated, and stopping this command stops nothing.\n\n" +
        "With --restored d1, invitations that D1 calls pending but whose numbers went back since are revoked, and " +
        "their numbers are free for whom they were given to. With --restored object, the allocator takes over every " +
        "number that D1 knows, and gets back those of invitations that have ended.",
    )
    .addOption(
      new Option("--restored <which>", "which of the two is older than it was")
        .choices(["d1", "object"])
        .makeOptionMandatory(),
    )
    .option("--wait <seconds>", "give up when nothing changes for so long", seconds, 150)
    .addHelpText("after", examples("reconcile --restored d1", "reconcile app_… --restored object --env production"))
    .action(async (id: string | undefined, options: { restored: "d1" | "object"; wait: number }, command: Command) => {
      const { reconcile } = await import("../actions/reconcile.ts");
      await reconcile(id ?? null, options.restored, options.wait * 1000, command);
    });
}
