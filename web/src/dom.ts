// Small helpers to make elements.
type Child = Node | string;

export function el<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  attributes: Record<string, string | boolean | number | ((e: Event) => void)> = {},
  ...children: Child[]
): HTMLElementTagNameMap[K] {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") element.addEventListener(name, value as EventListener);
    else if (value === true) element.setAttribute(name, "");
    else if (value !== false) element.setAttribute(name, String(value));
  }
  element.append(...children);
  return element;
}

export function byId<T extends HTMLElement = HTMLElement>(id: string): T {
  return document.getElementById(id) as T;
}

// A button that is on or off.
export function chip(label: string, key: string, on: boolean, change: (on: boolean) => void) {
  const button = el("button", { class: "chip", type: "button", "aria-pressed": String(on), title: key ? `Key ${key}` : "" }, label);
  const set = (value: boolean) => button.setAttribute("aria-pressed", String(value));
  button.addEventListener("click", () => {
    const value = button.getAttribute("aria-pressed") !== "true";
    set(value);
    change(value);
  });
  return { button, set };
}

export function icon(path: string) {
  const holder = document.createElement("template");
  holder.innerHTML = `<svg viewBox="0 0 24 24" aria-hidden="true">${path}</svg>`;
  return holder.content.firstElementChild as SVGElement;
}
