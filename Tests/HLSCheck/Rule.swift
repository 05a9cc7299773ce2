/// The rules of RFC 8216bis (draft-pantos-hls-rfc8216bis-22) that can be checked in a playlist's text, and some that players make by what they do.
package enum Rule: String, Sendable, Hashable, CaseIterable {
    // The text.
    case text, firstLine, knownTag, tagSyntax, attributeSyntax, requiredAttribute, repeatedTag, mixedKinds
    case version, versionHigherThanNeeded
    // Single media playlists.
    case targetDuration, segmentDuration, segmentWithoutDuration, danglingTag, sequenceOrder, discontinuitySequenceOrder
    case initializationMap, dateFormat, dateAmbiguous, dateAtDiscontinuity, playlistType, ambiguousURI
    case serverControl, skipBoundary, holdBack, partHoldBack, partHoldBackAdvice
    case partInformation, partDuration, partDurationFloor, partsOfSegment, partOutlived, independentSegment
    case preloadHint, preloadHintAfterEnd, skip, skippedTooMuch
    // Successive versions of one media playlist.
    case targetDurationChanged, headerChanged, sequenceDecreased, discontinuitySequenceDecreased, segmentChanged, partChanged
    case partsRemovedOutOfOrder, hintBroken, removedTooMuch, changedAfterEnd, segmentCadence, partCadence, deltaWithoutBase
    // Multivariant playlists.
    case variant, bandwidth
    // What players need.
    case segmentNotHeld, segmentNotIndependent, startNotIndependent

    /// The sections of the RFC that state the rule.
    package var section: String {
        switch self {
        case .text: "4"
        case .firstLine: "4.4.1.1"
        case .knownTag, .tagSyntax: "4.1"
        case .attributeSyntax: "4.2"
        case .requiredAttribute: "4.4"
        case .repeatedTag: "4.4.3"
        case .mixedKinds: "4.4.6"
        case .version: "8"
        case .versionHigherThanNeeded: "6.2.1 (should)"
        case .targetDuration, .segmentDuration: "4.4.3.1"
        case .segmentWithoutDuration: "4.4.4.1"
        case .danglingTag: "4.4.4"
        case .sequenceOrder: "4.4.3.2"
        case .discontinuitySequenceOrder: "4.4.3.3"
        case .initializationMap: "3.1.2, 4.4.4.5"
        case .dateFormat: "4.4.4.6"
        case .dateAmbiguous: "6.2.1"
        case .dateAtDiscontinuity: "6.2.1 (should)"
        case .playlistType: "6.2.2"
        case .ambiguousURI: "6.2.1"
        case .serverControl, .skipBoundary, .holdBack, .partHoldBack: "4.4.3.8"
        case .partHoldBackAdvice: "4.4.3.8 (should)"
        case .partInformation: "4.4.3.7"
        case .partDuration, .partDurationFloor: "4.4.4.9"
        case .partsOfSegment: "3.2"
        case .partOutlived: "6.2.2 (should)"
        case .independentSegment: "4.4.2.1"
        case .preloadHint: "6.2.6 (should)"
        case .preloadHintAfterEnd: "4.4.5.3"
        case .skip: "4.4.5.2"
        case .skippedTooMuch: "6.2.5.1"
        case .targetDurationChanged, .headerChanged, .segmentChanged, .partChanged, .changedAfterEnd: "6.2.1"
        case .sequenceDecreased, .discontinuitySequenceDecreased, .partsRemovedOutOfOrder, .removedTooMuch: "6.2.2"
        case .hintBroken: "4.4.5.3"
        case .segmentCadence, .partCadence: "6.2.1"
        case .deltaWithoutBase: "6.3.7"
        case .variant, .bandwidth: "4.4.6.2"
        // hls.js takes what follows a segment as continuous until it is told otherwise, and then gives up.
        case .segmentNotHeld: "4.4.4.3 (players)"
        // Players begin at segments, those of low latency a hold back before the end.
        case .segmentNotIndependent: "4.4.2.1 (players)"
        case .startNotIndependent: "4.4.3.8 (players)"
        }
    }
}

/// A rule that a playlist breaks, and the line.
package struct Violation: Sendable, Equatable, CustomStringConvertible {
    package let rule: Rule
    /// Counted from 1; nil: the playlist as a whole.
    package let line: Int?
    package let detail: String

    package init(_ rule: Rule, line: Int? = nil, _ detail: String) {
        self.rule = rule
        self.line = line
        self.detail = detail
    }

    package var description: String {
        "\(self.rule.rawValue) (§\(self.rule.section))\(self.line.map { " line \($0)" } ?? ""): \(self.detail)"
    }
}
