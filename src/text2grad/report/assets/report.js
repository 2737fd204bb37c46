// Entry point. The data is embedded in the page as JSON.

const data = JSON.parse(document.getElementById("data").textContent);
initTheme();
initTooltip();
initCurves(data.metrics, data.only_recorded);
const showSample = initSamples(data.samples, data.live ? keptState() : { saved: null, save: () => {} });
initExamples(data.examples);
initStory(data.examples, data.picked, showSample);
if (data.live) initLive();
