// Search of the whole documentation, without a server: the index is a script, because a browser does not read other files of a folder on disk.
"use strict";

const root = new URL(".", document.currentScript.src).href;
const input = document.getElementById("search");
const found = document.getElementById("found");
let sections = null;

function searchable(all) {
	sections = all.map((s) => ({ ...s, lower: `${s.page} ${s.heading} ${s.text}`.toLowerCase(), title: `${s.page} ${s.heading}`.toLowerCase() }));
	search();
}

function load() {
	if (sections !== null || document.getElementById("index")) {
		return;
	}
	const script = document.createElement("script");
	script.id = "index";
	script.src = `${root}search-index.js`;
	document.head.append(script);
}

// search shows the sections with all words, those with the words in their headings first.
function search() {
	const words = input.value.toLowerCase().split(/\s+/).filter((word) => word !== "");
	found.hidden = words.length === 0;
	if (sections === null || words.length === 0) {
		return;
	}
	const weight = (s) => words.filter((word) => s.title.includes(word)).length;
	const hits = sections.filter((s) => words.every((word) => s.lower.includes(word))).sort((a, b) => weight(b) - weight(a)).slice(0, 20);
	found.replaceChildren(...hits.map((s) => line(s, words[0])));
	if (hits.length === 0) {
		found.textContent = "Nothing has all these words.";
	}
}

function line(s, word) {
	const item = document.createElement("li");
	const link = document.createElement("a");
	link.href = root + s.url;
	link.textContent = s.heading === s.page ? s.page : `${s.page}: ${s.heading}`;
	const at = Math.max(0, s.text.toLowerCase().indexOf(word) - 60);
	const text = document.createElement("p");
	text.textContent = s.text.slice(at, at + 160);
	item.append(link, text);
	return item;
}

input.addEventListener("focus", load);
input.addEventListener("input", () => { load(); search(); });
document.addEventListener("keydown", (event) => {
	if (event.key === "/" && document.activeElement !== input) {
		event.preventDefault();
		input.focus();
	} else if (event.key === "Escape") {
		input.value = "";
		search();
	}
});
document.addEventListener("click", (event) => {
	if (!event.target.closest("header")) {
		found.hidden = true;
	}
});
