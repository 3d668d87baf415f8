// `make web`: Tabler's stylesheet with the classes used in templates, and the icons they name, into common/web/static.
import { readFileSync, writeFileSync, readdirSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import postcss from "postcss";
import { PurgeCSS } from "purgecss";

const here = dirname(fileURLToPath(import.meta.url));
const root = join(here, "../..");
const modules = join(here, "node_modules");
const TEMPLATES = ["common/web/templates", "daemon/api/page/templates", "headquarters/page/templates"].map((folder) => join(root, folder));
const DARK = "[data-bs-theme=dark]";

// Dark mode by the browser's preference, without a script that sets an attribute.
const darkByMedia = {
  postcssPlugin: "dark-by-media",
  Once(sheet, { AtRule }) {
    sheet.walkRules((rule) => {
      if (rule.parent.type === "atrule" && rule.parent.name === "keyframes") return;
      const dark = rule.selectors.filter((each) => each.includes(DARK));
      if (!dark.length) return;
      const light = rule.selectors.filter((each) => !each.includes(DARK));
      const media = new AtRule({ name: "media", params: "(prefers-color-scheme: dark)" });
      const copy = rule.clone();
      copy.selectors = dark.map((each) => each.replaceAll(DARK, ":root"));
      media.append(copy);
      rule.after(media);
      if (light.length) rule.selectors = light; else rule.remove();
    });
  },
};

const whole = readFileSync(join(modules, "@tabler/core/dist/css/tabler.min.css"), "utf8");
const dark = postcss([darkByMedia]).process(whole, { from: undefined }).css;
const content = TEMPLATES.flatMap((folder) => readdirSync(folder).map((name) => join(folder, name)));
const [purged] = await new PurgeCSS().purge({
  content,
  css: [{ raw: dark }],
  variables: true,
  keyframes: true,
  fontFace: true,
  safelist: { variables: [...new Set(readFileSync(join(root, "common/web/static/kit.css"), "utf8").match(/--tblr-[a-z0-9-]+/g))] },
  defaultExtractor: (text) => text.match(/[A-Za-z0-9_-]+/g) ?? [],
});
const licence = whole.match(/\/\*![\s\S]*?\*\//)[0];
// Icons in the sheet (the arrow of a select, a tick) are data: URLs, which the page's policy allows.
writeFileSync(join(root, "common/web/static/tabler.css"), purged.css.includes(licence) ? purged.css : licence + purged.css);

const names = new Set(content.flatMap((file) => [...readFileSync(file, "utf8").matchAll(/\bicon\("([a-z0-9-]+)"/g)].map((found) => found[1])));
for (const found of readFileSync(join(root, "common/web/assets.py"), "utf8").matchAll(/^ {4}"([a-z0-9-]+)",/gm)) names.add(found[1]);
const icons = Object.fromEntries([...names].sort().map((name) => {
  const svg = readFileSync(join(modules, `@tabler/icons/icons/outline/${name}.svg`), "utf8");
  return [name, svg.replace(/<!--[\s\S]*?-->/, "").replace(/<svg[^>]*>|<\/svg>/g, "").replace(/\s*\n\s*/g, "").trim()];
}));
writeFileSync(join(root, "common/web/static/icons.json"), JSON.stringify(icons, null, 0).replaceAll('","', '",\n"') + "\n");
