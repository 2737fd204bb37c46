// Entry point. The data is embedded in the page as JSON.

const data = JSON.parse(document.getElementById("data").textContent);
initTheme();
initTooltip();
initCurves(data.metrics);
const showSample = initSamples(data.samples);
initExamples(data.examples);
initStory(data.examples, data.picked, showSample);
