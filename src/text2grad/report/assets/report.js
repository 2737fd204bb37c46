// Entry point. The data is embedded in the page as JSON.

const data = JSON.parse(document.getElementById("data").textContent);
initTheme();
initTooltip();
initCurves(data.metrics, data.only_recorded);
initSamples(data.samples);
initExamples(data.examples);
