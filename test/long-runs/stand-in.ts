/**
 * A part of the platform with those members only that the service uses; to use another one is an error that says so.
 *
 * @param name for the error
 */
export function standIn<Part extends object>(name: string, members: { [Member in keyof Part]?: unknown }): Part {
  return new Proxy(Object.assign(Object.create(null), members), {
    get(_, member) {
      if (Object.hasOwn(members, member)) return Reflect.get(members, member);
      throw new Error(`${name} has no ${String(member)} here`);
    },
  });
}
