import Support

/// Checks a target's URL before it is stored, by the same rules as for each call. Pure; any thread.
package enum OutboundTarget {
    /// Throws for a URL that could never be called. A name's addresses are looked up and checked with each call.
    package static func check(_ url: String, _ rules: TargetRules) throws(OutboundError) {
        let target = try OutboundURL(parsing: url)
        guard let why = rules.objection(to: target.host) else { return }
        throw .forbiddenTarget(host: target.hostText, address: target.hostText, why: why)
    }
}
