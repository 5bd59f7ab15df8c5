// Answers the questions of test_playground.py: one JSON object on the standard input, one on the standard output.
// Arrays of float32 travel as base64. The argument is the folder of the playground's sources.

const folder = process.argv[2];
const engine = await import(`${folder}/engine.js`);

const floats = (text) => new Float32Array(Uint8Array.from(Buffer.from(text, "base64")).buffer);
const packed = (array) => Buffer.from(new Float32Array(array).buffer).toString("base64");
const rowsOf = (array, width) => Array.from({ length: array.length / width }, (_, i) => array.subarray(i * width, (i + 1) * width));

const ANSWERS = {
  /** Outputs, averaged input gradients of some readouts, and weight gradient of sum(outputs * dOutputs). */
  passes({ config, outputs, plain, weights, images, readouts, dOutputs }) {
    const network = new engine.Network(config, { outputs, plain }), rows = rowsOf(floats(images), engine.PIXELS);
    network.load(floats(weights));
    network.forward((lane, i) => rows[lane][i]);
    const values = packed(network.evaluate());
    const inputs = packed(network.inputGradients(floats(readouts)));
    return { values, inputs, weights: packed(network.weightGradient(floats(dOutputs))) };
  },
};

let text = "";
for await (const part of process.stdin) text += part;
const { name, cases } = JSON.parse(text);
process.stdout.write(JSON.stringify(cases.map((one) => ANSWERS[name](one))));
