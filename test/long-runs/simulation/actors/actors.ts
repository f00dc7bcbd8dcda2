import type { Dice } from "../../dice.ts";
import { Member } from "../member.ts";
import { type ApplicationPlan, HOUR } from "../plan.ts";
import { attack } from "./attacker.ts";
import { Device } from "./device.ts";
import { askEverythingAgain } from "./phases.ts";
import { Server } from "./server.ts";

const OUTAGE_MILLISECONDS = 20_000;

export interface Party {
  application: ApplicationPlan;
  devices: Device[];
  server: Server;
  attackersDice: Dice;
}

export class Actors extends Member {
  readonly #parties: Party[] = this.world.plan.applications.map((application) => {
    const devices = application.devices.map((plan) => new Device(this.world, { application, plan }));
    const attackersDice = this.world.dice.of(`attacker of ${application.id}`);
    return { application, devices, server: new Server(this.world, { application, devices }), attackersDice };
  });
  /** How often an act comes with the end of an isolate or an object. */
  readonly #lossChance = this.world.dice.of("losses").oneOf([0, 0.03, 0.1] as const);

  /** The administrator makes the applications. Sweeps have come before. */
  async arrive(): Promise<void> {
    for (const { application } of this.#parties) this.world.administrator.create(application);
    await this.world.isolates.sweep();
    for (const { application } of this.#parties) this.world.d1.of(application.id).keepFrom();
  }

  /** Everybody does what they do, at once. */
  async act(): Promise<void> {
    const { plan, administrator } = this.world;
    // Devices come a little later, so that some are invited before they have a badge.
    const later = plan.thinkMilliseconds;
    const lives = this.#parties.flatMap(({ application, devices, server, attackersDice }) => [
      ...devices.map((device) => this.#live(`${device.udid} ${application.id}`, 1, later, () => device.act())),
      this.#live(`server of ${application.id}`, 2, 0, () => server.act()),
      this.#live(`attacker of ${application.id}`, 2, later, () => attack(this.world, attackersDice, application)),
      this.#live(`administrator of ${application.id}`, 1, 0, () => administrator.act(application)),
    ]);
    await Promise.all(lives);
  }

  /** The administrator sets some URLs anew, so that what is held there is sent; elsewhere it stays held. */
  fixEndpoints(): void {
    const { dice, administrator } = this.world;
    for (const { application } of this.#parties) {
      if (dice.of(`endpoint of ${application.id}`).chance(0.5)) administrator.setUrl(application);
    }
  }

  /** Every copy of the badges that a server keeps by the feed is brought up to date, and is then exact. */
  async follow(): Promise<void> {
    for (const { server } of this.#parties) for (const follower of server.followers) await follower.followToEnd();
  }

  async askAgain(): Promise<void> {
    for (const party of this.#parties) await askEverythingAgain(this.world, party);
  }

  /** @param share how often somebody acts, in acts of a device */
  async #live(name: string, share: number, comesAfter: number, act: () => Promise<void>): Promise<void> {
    const { timeline, plan, isolates } = this.world;
    const dice = this.world.dice.of(`times of ${name}`);
    await timeline.sleep(comesAfter);
    for (let count = 0; count < share * plan.acts; count++) {
      const nap = dice.chance(plan.napChance) ? dice.below(4 * HOUR) : 0;
      await timeline.sleep(nap + dice.below(plan.thinkMilliseconds));
      await act();
      // The cron trigger: it may come late, not at all, or while the sweep before it runs.
      if (dice.chance(0.2)) timeline.after(dice.below(plan.sweepMilliseconds), () => void isolates.sweep());
      if (dice.chance(plan.plantChance)) await this.#plantOne(dice);
      if (dice.chance(plan.outageChance)) this.#takeD1Away(dice);
      if (dice.chance(this.#lossChance)) timeline.after(dice.below(50), () => this.#lose(dice));
    }
  }

  async #plantOne(dice: Dice): Promise<void> {
    const application = dice.pick(this.world.plan.applications);
    if (application && this.world.faults.isOn) await this.world.planter.plant(application);
  }

  /** Longer than some callers wait. */
  #takeD1Away(dice: Dice): void {
    const { faults, timeline } = this.world;
    faults.away.add("d1");
    timeline.after(dice.below(OUTAGE_MILLISECONDS), () => faults.away.delete("d1"));
  }

  /** An isolate or the objects end, without any reason of ours. */
  #lose(dice: Dice): void {
    const { plan, isolates, objects } = this.world;
    if (dice.chance(0.5)) isolates.killOne();
    else for (const { id } of plan.applications) objects.evict(id);
  }
}
