/// Reports when this machine's clock parts from the database's, and when it is back. A value.
struct ClockWatch {
    /// Apart by more: tickets are good within seconds.
    static let apartMs: Int64 = 5_000
    /// Apart by less: together again.
    static let togetherMs: Int64 = 2_500

    private var isApart = false

    /// `aheadMs`: the database's clock less this machine's. Returns true when they are apart from now on, false when together again.
    mutating func check(_ aheadMs: Int64) -> Bool? {
        let wasApart = self.isApart
        self.isApart = aheadMs.magnitude > UInt64(wasApart ? Self.togetherMs : Self.apartMs)
        return self.isApart == wasApart ? nil : self.isApart
    }
}
