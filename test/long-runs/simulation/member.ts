import type { World } from "./world.ts";

/** Whatever belongs to the world of one seed, and knows the rest of it. */
export class Member {
  readonly world: World;

  constructor(world: World) {
    this.world = world;
  }
}
