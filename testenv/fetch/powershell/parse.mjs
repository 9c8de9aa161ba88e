// Parses the PowerShell script of its argument, and prints each error with its line.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { Language, Parser } from "web-tree-sitter";

const require = createRequire(import.meta.url);
await Parser.init();
const parser = new Parser();
parser.setLanguage(await Language.load(require.resolve("tree-sitter-powershell/tree-sitter-powershell.wasm")));
const tree = parser.parse(readFileSync(process.argv[2], "utf8"));
let errors = 0;
const visit = (node) => {
  if (node.isError || node.isMissing) {
    errors++;
    console.log(`line ${node.startPosition.row + 1}: ${node.isMissing ? "missing " + node.type : node.text.slice(0, 60)}`);
  }
  node.children.forEach(visit);
};
visit(tree.rootNode);
process.exit(errors > 0 ? 1 : 0);
