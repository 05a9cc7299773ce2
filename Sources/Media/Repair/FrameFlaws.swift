/// Counts frames of one kind that came in a form of their own, by what became of them. A value.
package struct FrameFlaws: Sendable, Equatable {
    /// NAL units after start codes, or AAC with ADTS headers: brought into FLV's form.
    package var reframed = 0
    /// Pictures with stray bytes behind their last NAL unit, which were cut off.
    package var trimmed = 0
    /// Pictures flagged as keyframes that are none, or the other way round: flagged as they are.
    package var reflagged = 0
    /// Sequence headers made from what the frames hold.
    package var headersMade = 0
    /// Frames that are not made of NAL units, or of AAC blocks, or that depend on one that is not: no container can hold them.
    package var broken = 0
    /// Frames without a readable sequence header before them.
    package var headless = 0

    package init() {}
}
