"""A TDX quote as claims: the names that policies for TDX evidence are written against, one type per claim.

Measurements are lower-case hexadecimal of the raw bytes, flags are booleans, dates are RFC 3339.
"""

from __future__ import annotations

from typing import Any

from fastness.attestation.evidence.tdx_tcb import TcbStatus
from fastness.formats.evidence.tdx.collateral import Collateral
from fastness.formats.evidence.tdx.pck import Pck
from fastness.formats.evidence.tdx.quote import TdxQuote


def quote_claims(quote: TdxQuote, pck: Pck | None) -> dict[str, Any]:
    """What the quote and the platform's certificate say."""
    report, header = quote.report, quote.header
    body: dict[str, Any] = {
        "tcb_svn": report.tee_tcb_svn.hex(),
        "mr_seam": report.mr_seam.hex(),
        "mrsigner_seam": report.mrsigner_seam.hex(),
        "seam_attributes": report.seam_attributes.hex(),
        "td_attributes": report.td_attributes.raw.to_bytes(8, "little").hex(),
        "xfam": report.xfam.hex(),
        "mr_td": report.mr_td.hex(),
        "mr_config_id": report.mr_config_id.hex(),
        "mr_owner": report.mr_owner.hex(),
        "mr_owner_config": report.mr_owner_config.hex(),
        **{f"rtmr_{index}": value.hex() for index, value in enumerate(report.rtmrs)},
        "report_data": report.report_data.hex(),
    }
    if report.tee_tcb_svn2 is not None and report.mr_servicetd is not None:
        body |= {"tee_tcb_svn2": report.tee_tcb_svn2.hex(), "mr_servicetd": report.mr_servicetd.hex()}
    tdx: dict[str, Any] = {
        "quote": {
            "header": {
                "version": header.version,
                "att_key_type": header.key_type,
                "tee_type": header.tee_type.to_bytes(4, "little").hex(),
                "vendor_id": header.qe_vendor.hex(),
                "user_data": header.user_data.hex(),
            },
            "body": body,
        },
        "td_attributes": report.td_attributes.claims(),
    }
    if pck is not None:
        tdx |= {"fmspc": pck.fmspc.hex(), "platform_provider_id": pck.ppid.hex(), **pck.configuration}
        tdx["platform_instance_id"] = pck.instance_id.hex() if pck.instance_id else ""
    return {"tdx": tdx, "report_data": report.report_data.hex(), "init_data": report.mr_config_id.hex()}


def standing_claims(standing: TcbStatus, collateral: Collateral) -> dict[str, Any]:
    """How new the platform is, and by which documents."""
    info, identity = collateral.tcb_info, collateral.qe_identity
    return {
        "tcb_status": standing.status,
        "tcb_date": f"{standing.date:%Y-%m-%dT%H:%M:%SZ}" if standing.date else "",
        "tcb_eval_num": info.evaluation,
        "advisory_ids": list(standing.advisories),
        "earliest_issue_date": f"{min(info.issued, identity.issued):%Y-%m-%dT%H:%M:%SZ}",
        "latest_issue_date": f"{max(info.issued, identity.issued):%Y-%m-%dT%H:%M:%SZ}",
        "earliest_expiration_date": f"{min(info.next_update, identity.next_update):%Y-%m-%dT%H:%M:%SZ}",
    }
