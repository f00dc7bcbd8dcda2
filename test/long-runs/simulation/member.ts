import type { World } from "./world.ts";

/** Whatever belongs to the world of one seed, and knows the rest of it. */
export class Member {
  readonly world: World;

  constructor(world: World) {
    this.world = world;
  }
}

/** One of several of its kind, and what makes it this one. */
export class Part<Subject> extends Member {
  readonly subject: Subject;

  constructor(world: World, subject: Subject) {
    super(world);
    this.subject = subject;
  }
}
