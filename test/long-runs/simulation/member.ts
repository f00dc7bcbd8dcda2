import type { World } from "./world.ts";

/** Whatever belongs to the world of one seed, and knows the rest of it. */
export class Member<Around = World> {
  readonly world: Around;

  constructor(world: Around) {
    this.world = world;
  }
}
