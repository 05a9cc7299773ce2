import Health
import HTTPAPI

extension StreamHealth {
    static let outputType = OutputType<StreamHealth>.object(
        "StreamHealth",
        [
            .field(
                "verdict", .choice(),
                "good: nothing to do. degraded: viewers get the stream, but not as well as they could. bad: pictures stand, or no sound.",
                \.verdict),
            .field("reasons", .list(HealthReason.outputType), "The reasons, the worst first; those of a good stream are notes.", \.reasons),
        ])
}

extension HealthReason {
    fileprivate static let outputType = OutputType<HealthReason>.object(
        "HealthReason",
        [
            .field("code", .choice(), "The reason's word for programs.", \.code),
            .field("severity", .choice(), "What it alone makes of the verdict; good: a note.", \.severity),
            .field("value", .nullable(.number), "The measured value; null when there is nothing to measure.", \.value),
            .field("expected", .nullable(.number), "The bound or the usual value.", \.expected),
            .field("unit", .nullable(.text), "The unit of both.", \.code.unit),
            .field("message", .text, "What it means and what to do, in English.", \.message),
        ])
}
