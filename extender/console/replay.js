// Shows a report of `biga replay --json`: it is read here and goes nowhere.
"use strict";

(() => {
    const MAX_BYTES = 16 << 20;
    const SVG = "http://www.w3.org/2000/svg";
    const RELATIONS = ["PIX", "PXB", "PHB", "NODE", "SOCKET", "SYS"];
    const COLUMNS = [
        ["Aligned", (x) => percent(x.alignedShare)],
        ["Leaves per job", (x) => fixed(x.leavesPerJob)],
        ["Crossings per job", (x) => fixed(x.crossingsPerJob)],
        ["Communication over Biga", (x) => fixed(x.communicationTimeOverBiga)],
        ["Mean wait, s", (x) => fixed(x.waitMeanSeconds)],
        ["Wait, 99 of 100, s", (x) => fixed(x.waitP99Seconds)],
        ["Utilisation", (x) => percent(x.utilisation)],
        ["Rejected", (x) => fixed(x.rejected, 0)],
    ];

    const file = document.getElementById("report");
    const out = document.getElementById("replayed");

    function percent(share) {
        return Number.isFinite(share) ? `${(share * 100).toFixed(1)} %` : "–";
    }

    function fixed(number, digits = 1) {
        return Number.isFinite(number) ? number.toFixed(digits) : "–";
    }

    // An element with texts and elements in it; no text is ever markup.
    function element(name, attributes, ...inside) {
        const made = document.createElement(name);
        for (const [key, value] of Object.entries(attributes))
            made.setAttribute(key, value);
        made.append(...inside);
        return made;
    }

    function shape(name, attributes) {
        const made = document.createElementNS(SVG, name);
        for (const [key, value] of Object.entries(attributes))
            made.setAttribute(key, value);
        return made;
    }

    function heads(words) {
        return element("thead", {}, element("tr", {}, ...words.map(
            (word, i) => element("th", i ? { scope: "col", class: "n" }
                : { scope: "col" }, word))));
    }

    // How near pairs were, as one bar.
    function nearness(x) {
        const counts = RELATIONS.map((word) => x.pairsByRelation?.[word] ?? 0);
        const sum = counts.reduce((a, b) => a + b, 0) || 1;
        const words = RELATIONS.map((word, i) => `${word} ${counts[i]}`);
        const bar = shape("svg", { viewBox: "0 0 100 8", class: "stack",
            preserveAspectRatio: "none", role: "img",
            "aria-label": words.join(", ") });
        let at = 0;
        counts.forEach((count, i) => {
            bar.append(shape("rect", { class: `r${i}`, x: at, height: 8,
                width: count * 100 / sum }));
            at += count * 100 / sum;
        });
        return bar;
    }

    function table(results) {
        const body = element("tbody", {}, ...results.map((x) => element(
            "tr", {}, element("th", { scope: "row" }, String(x.policy)),
            element("td", {}, nearness(x)),
            ...COLUMNS.map(([, cell]) => element("td", { class: "n" },
                cell(x))))));
        return element("div", { class: "wide" }, element(
            "table", { class: "rows" }, heads(["Policy", "Pairs by relation",
                ...COLUMNS.map(([word]) => word)]), body));
    }

    // How much of the fleet was in use, over time.
    function usage(x) {
        const samples = (x.samples ?? []).filter(
            (s) => Number.isFinite(s.atSeconds) && Number.isFinite(s.used));
        const last = samples.at(-1)?.atSeconds || 1;
        const line = samples.map((s) => `${(s.atSeconds * 600 / last).toFixed(1)}`
            + `,${(60 - s.used * 60).toFixed(1)}`).join(" ");
        const plot = shape("svg", { viewBox: "0 0 600 60", class: "plot",
            preserveAspectRatio: "none", role: "img", "aria-label":
            `Cards in use over ${fixed(last, 0)} s, policy ${x.policy}` });
        plot.append(shape("polygon", { points: `0,60 ${line} 600,60` }));
        return element("figure", {}, plot, element(
            "figcaption", {}, `${x.policy}: cards in use, from 0 to 100 %, over `
            + `${fixed(last, 0)} s`));
    }

    function read(report) {
        if (!report || !Array.isArray(report.results) ||
            !report.results.every((x) => x && typeof x.policy === "string"))
            throw new Error("results: must be the list of policies that "
                + "biga replay --json writes");
        const fleet = report.fleet ?? {};
        const about = `${report.trace?.name ?? "a trace"}: `
            + `${report.trace?.jobs ?? "?"} jobs on ${fleet.hosts ?? "?"} hosts, `
            + `${fleet.cards ?? "?"} cards, ${fleet.leaves ?? "?"} leaves `
            + `(${fleet.fabric ?? "?"}), seed ${report.seed ?? "?"}`;
        const legend = element("ul", { class: "legend" }, ...RELATIONS.map(
            (word, i) => element("li", {}, element("span",
                { class: `cell r${i}` }), word)));
        return [element("p", { class: "lead" }, about), legend,
            table(report.results), element("h2", {}, "Cards in use"),
            element("div", { class: "plots" }, ...report.results.map(usage))];
    }

    async function open(chosen) {
        try {
            if (chosen.size > MAX_BYTES)
                throw new Error(`has ${chosen.size} bytes, at most ${MAX_BYTES} `
                    + "are read");
            out.replaceChildren(...read(JSON.parse(await chosen.text())));
        } catch (error) {
            out.replaceChildren(element("p", { role: "alert", class: "alert" },
                `${chosen.name}: ${error.message}`));
        }
    }

    file.addEventListener("change", () => {
        if (file.files.length)
            open(file.files[0]);
    });
})();
